#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>

#include "tensor/error.h"

namespace regard::cli {
namespace {

// All that a signal handler may touch.
std::atomic<bool> asked_to_stop{false};
std::atomic<bool> has_file{false};
char file_to_remove[PATH_MAX];

void on_signal(int) {
  if (asked_to_stop.exchange(true)) {
    if (has_file) unlink(file_to_remove);
    _exit(130);
  }
}

}  // namespace

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: waiting for input ends too
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return asked_to_stop; }

void throw_if_interrupted() {
  if (interrupted()) throw Error(ErrorCode::interrupted, "interrupted");
}

void remove_when_stopped(const std::string& file) {
  has_file = false;
  if (file.empty() || file.size() >= sizeof file_to_remove) return;
  file.copy(file_to_remove, file.size());
  file_to_remove[file.size()] = '\0';
  has_file = true;
}

}  // namespace regard::cli
