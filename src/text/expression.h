#pragma once
// Regular expressions of tokenizer files, run by PCRE2.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace regard {

class Expression {
 public:
  // `pattern` as the files write it (Oniguruma's syntax, as far as it means the same here). Error{unsupported} names a
  // pattern that is not understood.
  explicit Expression(const std::string& pattern);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  struct Match {
    std::size_t begin, end;
  };
  // Goes through the matches of a text in order, one after the other; bytes that are not valid UTF-8 are in none.
  // A match without a character is passed over. Error{unsupported} when the engine would take too long.
  class Matches {
   public:
    Matches(const Expression& expression, std::string_view text);
    ~Matches();
    Matches(const Matches&) = delete;
    Matches& operator=(const Matches&) = delete;
    std::optional<Match> next();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string pattern_;
};

}  // namespace regard
