#pragma once
// Running another program, without a shell.

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace regard {

struct ChildProcess {
  std::vector<std::string> command;                              // the first word is looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // set over our own
  std::filesystem::path output;                                  // takes what it prints, both kinds; or these:
  int input = -1, printed = -1, errors = -1;                     // descriptors in the place of 0, 1 and 2
  int inherited_file = -1;  // a file descriptor it shall keep open too (a lock), or -1
};

// Runs it to its end; standard input is empty unless it is given. `while_running` is called about ten times a second;
// when it throws, the program is told to stop (SIGTERM, after two seconds SIGKILL), waited for, and the exception goes
// on. Gives the exit status, or 128 + the signal that ended it. Error{not_found}: there is no such program. Error{io}:
// it cannot be started.
int run(const ChildProcess& child, const std::function<void()>& while_running);

}  // namespace regard
