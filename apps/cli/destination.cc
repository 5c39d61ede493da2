#include "destination.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "interrupt.h"

namespace regard::cli {
namespace {

void write_file(const std::string& path, const std::function<void(Output&)>& write) {
  Output out = Output::to_file(path);
  remove_when_stopped(out.temporary());
  write(out);
  out.finish();
  remove_when_stopped({});
}

}  // namespace

void check_outputs(const Options& options) {
  for (const std::string& path : options.outputs) Output::to_file(path);  // what is not finished is removed
}

void deliver(const Options& options, const Writers& writers) {
  for (const std::string& path : options.outputs) {
    const std::string extension = std::filesystem::path(path).extension().string();
    write_file(path, extension == ".json" ? writers.json : writers.files.at(extension));
  }
  if (options.json) {
    Output out = Output::to_descriptor(STDOUT_FILENO, "standard output");
    (writers.printed_json ? writers.printed_json : writers.json)(out);
    out.finish();
  } else if (options.outputs.empty()) {
    const Terminal terminal = options.terminal();
    print_page(writers.page(terminal), terminal);
  }
}

void print_page(const Page& page, const Terminal& terminal) {
  Output out = Output::to_descriptor(STDOUT_FILENO, "standard output");
  for (const Line& line : page.lines) out.write(terminal_text(line, terminal.colours) + '\n');
  out.finish();
}

void remark(const Options& options, const std::string& text) {
  if (!options.quiet) std::fputs((text + "\n").c_str(), stderr);  // one that cannot be written is not missed
}

}  // namespace regard::cli
