#pragma once
// How long work tells a face how far it is, and hears that it should stop.

#include <cstdint>
#include <string_view>

namespace regard {

class Progress {
 public:
  virtual ~Progress() = default;
  // `done` of `total` steps of `what` ("reading layers"). Called from the thread that started the work. May throw
  // Error{interrupted}, which leaves through the work; what was done so far is kept where the work says so.
  virtual void at(std::string_view what, std::int64_t done, std::int64_t total) = 0;
};

}  // namespace regard
