#pragma once
// That something throws the Error it should.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensor/error.h"

namespace regard::testing {

inline std::optional<Error> error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Expects an Error of `code` whose message has each of `words`.
inline void expect_error(ErrorCode code, const std::vector<std::string>& words, const std::function<void()>& work) {
  const std::optional<Error> error = error_of(work);
  ASSERT_TRUE(error) << "nothing was thrown";
  EXPECT_EQ(error->code, code) << error->message;
  for (const std::string& word : words) EXPECT_NE(error->message.find(word), std::string::npos) << error->message;
  EXPECT_EQ(error->message.find('\n'), std::string::npos) << error->message;
}

}  // namespace regard::testing
