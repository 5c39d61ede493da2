#pragma once
// The one exception type of the library. The library never prints, aborts or exits: it throws this.

#include <fmt/core.h>

#include <exception>
#include <string>
#include <utility>

namespace regard {

enum class ErrorCode {
  bad_input,    // a file, text, shape or value that cannot be used
  usage,        // an option or request that does not exist or does not fit
  not_found,    // a file, tensor or name that is not there
  unsupported,  // understood, but not something regard can do
  io,           // the operating system said no
  interrupted,  // the person asked to stop
};

class Error : public std::exception {
 public:
  // `message` says what was wrong and where; `hint` what to do about it (may be empty). Each is one line, no final
  // stop.
  Error(ErrorCode code, std::string message, std::string hint = {})
      : code(code), message(std::move(message)), hint(std::move(hint)) {}
  const char* what() const noexcept override { return message.c_str(); }

  ErrorCode code;
  std::string message;
  std::string hint;
};

}  // namespace regard
