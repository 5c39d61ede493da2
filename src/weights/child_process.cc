#include "weights/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "tensor/error.h"

namespace regard {

namespace {

// NAME=value for every variable of ours, those of `changes` in their place.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool changed = false;
    for (const auto& [name, value] : changes) changed |= text.substr(0, text.find('=')) == name;
    if (!changed) all.emplace_back(text);
  }
  for (const auto& [name, value] : changes) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    sigset_t set;
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes, &set);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&set, signal);
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

// The exit status, if it has ended.
bool ended(pid_t pid, int& status) {
  int raw = 0;
  const pid_t got = waitpid(pid, &raw, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return false;
  // got < 0 otherwise: the program reaps its children elsewhere; the status is lost, so it cannot count as success
  status = got < 0 ? 255 : WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return true;
}

void stop(pid_t pid) {
  using std::chrono::steady_clock;
  int status = 0;
  kill(pid, SIGTERM);
  for (const auto start = steady_clock::now(); steady_clock::now() - start < std::chrono::seconds(2);) {
    if (ended(pid, status)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

int run(const ChildProcess& child, const std::function<void()>& while_running) {
  std::vector<std::string> command = child.command, environment = environment_with(child.environment);
  SpawnSettings settings;
  if (child.input >= 0)
    posix_spawn_file_actions_adddup2(&settings.files, child.input, 0);
  else
    posix_spawn_file_actions_addopen(&settings.files, 0, "/dev/null", O_RDONLY, 0);
  if (child.printed >= 0)
    posix_spawn_file_actions_adddup2(&settings.files, child.printed, 1);
  else
    posix_spawn_file_actions_addopen(&settings.files, 1, child.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&settings.files, child.errors >= 0 ? child.errors : 1, 2);
  // dup2 of a descriptor onto itself takes its close-on-exec mark away (glibc 2.29 and later)
  if (child.inherited_file >= 0)
    posix_spawn_file_actions_adddup2(&settings.files, child.inherited_file, child.inherited_file);

  pid_t pid = 0;
  const int error = posix_spawnp(&pid, command[0].c_str(), &settings.files, &settings.attributes,
                                 pointers(command).data(), pointers(environment).data());
  if (error != 0)
    throw Error(error == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                fmt::format("{} cannot be started: {}", command[0], std::generic_category().message(error)));
  int status = 0;
  try {
    for (auto pause = std::chrono::milliseconds(5); !ended(pid, status);
         pause = std::min(2 * pause, decltype(pause)(100))) {
      while_running();
      std::this_thread::sleep_for(pause);
    }
  } catch (...) {
    stop(pid);
    throw;
  }
  return status;
}

}  // namespace regard
