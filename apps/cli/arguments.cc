#include "arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tensor/error.h"
#include "text/nearest_word.h"

namespace regard::cli {
namespace {

[[noreturn]] void bad_value(std::string_view what, std::string_view text, const std::string& wanted) {
  throw Error(ErrorCode::usage, fmt::format("\"{}\" is not {}, {}", text, wanted, what),
              "the verb's --help says what it takes");
}

template <typename Number>
bool parse_whole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

struct Arguments::Parser {
  CLI::App app;
  std::string verb;
};

Arguments::Arguments(std::string_view verb, std::string_view description, std::string_view examples)
    : parser_(std::make_unique<Parser>()) {
  parser_->verb = verb;
  CLI::App& app = parser_->app;
  app.description(std::string(description));
  app.name("regard " + std::string(verb));
  app.footer(std::string(examples));
  app.allow_extras();  // so that what is not known is named here, with the nearest name
  app.get_formatter()->column_width(34);
}

Arguments::~Arguments() = default;

void Arguments::positional(const std::string& name, std::optional<std::string>& value, const std::string& help) {
  parser_->app
      .add_option_function<std::string>(
          name, [&value](const std::string& text) { value = text; }, help)
      ->type_name("");
}

void Arguments::text(const std::string& names, std::optional<std::string>& value, const std::string& placeholder,
                     const std::string& help) {
  parser_->app
      .add_option_function<std::string>(
          names, [&value](const std::string& text) { value = text; }, help)
      ->type_name(placeholder);
}

void Arguments::texts(const std::string& names, std::vector<std::string>& values, const std::string& placeholder,
                      const std::string& help) {
  parser_->app
      .add_option_function<std::vector<std::string>>(
          names, [&values](const std::vector<std::string>& texts) { values = texts; }, help)
      ->type_name(placeholder)
      ->allow_extra_args(false);
}

void Arguments::flag(const std::string& names, bool& value, const std::string& help) {
  parser_->app.add_flag_function(
      names, [&value](std::int64_t) { value = true; }, help);
}

void Arguments::integer(const std::string& names, std::optional<std::int64_t>& value, std::int64_t low,
                        std::int64_t high, const std::string& help) {
  const std::string last = names.substr(names.rfind(',') == names.npos ? 0 : names.rfind(',') + 1);
  parser_->app
      .add_option_function<std::string>(
          names, [=, &value](const std::string& text) { value = parse_integer(last, text, low, high); }, help)
      ->type_name("N");
}

void Arguments::number(const std::string& names, std::optional<double>& value, double low, double high,
                       const std::string& help) {
  parser_->app
      .add_option_function<std::string>(
          names,
          [=, &value](const std::string& text) {
            double parsed = 0;
            if (!parse_whole(text, parsed) || !std::isfinite(parsed) || parsed < low || parsed > high)
              bad_value(names, text,
                        std::isinf(high) ? fmt::format("a number of at least {}", low)
                                         : fmt::format("a number from {} to {}", low, high));
            value = parsed;
          },
          help)
      ->type_name("X");
}

bool Arguments::parse(std::span<const std::string> words) {
  CLI::App& app = parser_->app;
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw Error(ErrorCode::usage, fmt::format("{}, regard {}", message, parser_->verb),
                fmt::format("see regard {} --help", parser_->verb));
  }
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) return true;
  const auto option = std::find_if(unknown.begin(), unknown.end(),
                                   [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  if (option == unknown.end())
    throw Error(ErrorCode::usage, fmt::format("unexpected \"{}\", regard {}", unknown.front(), parser_->verb),
                "after the model come options: a text goes after -p, in quotes");
  std::vector<std::string> names = {"--help"};
  for (const CLI::Option* known : app.get_options())
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  const std::string word = option->substr(0, option->find('='));
  const std::string meant = nearest_word(word, names);
  throw Error(
      ErrorCode::usage, fmt::format("unknown option {}, regard {}", word, parser_->verb),
      meant.empty() ? fmt::format("see regard {} --help", parser_->verb) : fmt::format("did you mean {}?", meant));
}

std::string Arguments::help() const { return parser_->app.help(); }

std::int64_t parse_integer(std::string_view what, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  if (!parse_whole(text, value) || value < low || value > high)
    bad_value(what, text,
              high == std::numeric_limits<std::int64_t>::max()
                  ? fmt::format("a whole number of at least {}", low)
                  : fmt::format("a whole number from {} to {}", low, high));
  return value;
}

std::vector<std::int32_t> parse_ids(std::string_view what, std::string_view text) {
  std::vector<std::int32_t> ids;
  if (text.empty()) return ids;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    std::string_view word = text.substr(begin, comma - begin);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    ids.push_back(static_cast<std::int32_t>(
        parse_integer(what, word, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max())));
    begin = comma + 1;
  }
  return ids;
}

}  // namespace regard::cli
