#pragma once
// The words after a verb, put into variables. Everything that does not fit is Error{usage} with what to type instead.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regard::cli {

class Arguments {
 public:
  // `examples`: shown at the end of the help.
  Arguments(std::string_view verb, std::string_view description, std::string_view examples = {});
  ~Arguments();

  void positional(const std::string& name, std::optional<std::string>& value, const std::string& help);
  void text(const std::string& names, std::optional<std::string>& value, const std::string& placeholder,
            const std::string& help);
  void texts(const std::string& names, std::vector<std::string>& values, const std::string& placeholder,
             const std::string& help);  // may be given several times
  void flag(const std::string& names, bool& value, const std::string& help);
  // Both ends included.
  void integer(const std::string& names, std::optional<std::int64_t>& value, std::int64_t low, std::int64_t high,
               const std::string& help);
  void number(const std::string& names, std::optional<double>& value, double low, double high, const std::string& help);

  // False: help was asked for, and nothing else is to be done.
  bool parse(std::span<const std::string> words);
  std::string help() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// A whole number, all of `text`. `what` is for the message: "--threads".
std::int64_t parse_integer(std::string_view what, std::string_view text, std::int64_t low, std::int64_t high);

// "1,2,3" -> numbers; an empty text gives none.
std::vector<std::int32_t> parse_ids(std::string_view what, std::string_view text);

}  // namespace regard::cli
