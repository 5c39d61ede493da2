#pragma once
// The options that are the same everywhere (FACES.md), and what they ask for.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "report/terminal.h"

namespace regard::cli {

struct Options {
  std::optional<std::string> model;
  std::optional<std::string> prompt, file, ids;
  bool chat = false;
  std::optional<std::string> system;
  bool json = false;
  std::vector<std::string> outputs;
  std::optional<std::int64_t> threads;
  std::optional<std::string> target;
  bool no_color = false, quiet = false;

  void declare_model(Arguments& arguments);
  void declare_optional_model(Arguments& arguments);
  void declare_text(Arguments& arguments);  // one must be given; also --chat, --system
  void declare_optional_text(Arguments& arguments);
  // `extensions`: what -o can write for this verb, {".json", ".csv"}; empty: no -o.
  void declare_output(Arguments& arguments, std::vector<std::string> extensions);
  void declare_machine(Arguments& arguments);  // --threads, --target, --quiet, --no-color

  // Parses, checks that what was given goes together, and sets threads and target. False: help was printed.
  bool parse(Arguments& arguments, const std::vector<std::string>& words);

  const std::string& model_name() const;  // Error{usage} when none was given
  Terminal terminal() const;              // of standard output
  bool shows_progress() const;            // standard error is a terminal, and nobody asked for quiet

 private:
  std::vector<std::string> extensions_;
  bool takes_model_ = false, takes_text_ = false;
};

}  // namespace regard::cli
