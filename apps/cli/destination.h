#pragma once
// Where a result goes: standard output as JSON or as a page, and the files of -o.

#include <functional>
#include <map>
#include <string>

#include "options.h"
#include "report/output.h"
#include "report/page.h"

namespace regard::cli {

// The ways in which a verb's result can be written.
struct Writers {
  std::function<void(Output&)> json;
  std::function<void(Output&)> printed_json = {};  // where it is not the same as in a file
  std::function<Page(const Terminal&)> page;
  // Beside .json: by extension, the bytes of a file that appears whole or not at all.
  std::map<std::string, std::function<void(Output&)>> files = {};
};

// For work that takes long: Error{io} now if a file of -o could not be written later.
void check_outputs(const Options& options);
// Does what --json and -o ask for; without either, prints the page.
void deliver(const Options& options, const Writers& writers);

void print_page(const Page& page, const Terminal& terminal);
// A remark on standard error, for people: not with --quiet.
void remark(const Options& options, const std::string& text);

}  // namespace regard::cli
