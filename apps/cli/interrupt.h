#pragma once
// Ctrl-C: the first one asks the work to stop and keep what is done, the second one stops the process at once.

#include <string>

namespace regard::cli {

// For SIGINT and SIGTERM.
void watch_for_interrupts();
bool interrupted();
void throw_if_interrupted();  // Error{interrupted}

// A half-written file to be removed when the process stops at once; an empty name for none.
void remove_when_stopped(const std::string& file);

}  // namespace regard::cli
