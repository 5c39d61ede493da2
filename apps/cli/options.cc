#include "options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "kernels/target.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kMostThreads = 1024;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

void Options::declare_model(Arguments& arguments) {
  takes_model_ = true;
  declare_optional_model(arguments);
}

void Options::declare_optional_model(Arguments& arguments) {
  arguments.positional("MODEL", model, "a name that `regard models` lists, org/name of a hub, a folder or a file");
}

void Options::declare_text(Arguments& arguments) {
  takes_text_ = true;
  declare_optional_text(arguments);
  arguments.flag("--chat", chat, "put the text into the model's chat template, as the user's message");
  arguments.text("--system", system, "TEXT", "with --chat: the system message");
}

void Options::declare_optional_text(Arguments& arguments) {
  arguments.text("-p,--prompt", prompt, "TEXT", "the text");
  arguments.text("-f,--file", file, "FILE", "the text of a file, byte for byte; - is standard input");
  arguments.text("--ids", ids, "1,2,3", "token ids, taken as they are");
}

void Options::declare_output(Arguments& arguments, std::vector<std::string> extensions) {
  extensions_ = std::move(extensions);
  arguments.flag("--json", json, "print one JSON document and nothing else");
  arguments.texts("-o,--output", outputs, "FILE",
                  "write a file instead: " + joined(extensions_) + " (may be repeated)");
}

void Options::declare_machine(Arguments& arguments) {
  arguments.integer("--threads", threads, 1, kMostThreads,
                    "processors to use (default: all that this process may use)");
  arguments.text("--target", target, "NAME", "force an instruction set; `regard info MODEL` lists them");
  arguments.flag("--no-color", no_color, "no colours");
  arguments.flag("--quiet", quiet, "no progress and no remarks on standard error");
}

bool Options::parse(Arguments& arguments, const std::vector<std::string>& words) {
  if (!arguments.parse(words)) {
    std::fputs(arguments.help().c_str(), stdout);
    return false;
  }
  if (takes_model_) model_name();
  const int given = prompt.has_value() + file.has_value() + ids.has_value();
  if (takes_text_ && given == 0)
    throw Error(ErrorCode::usage, "no text to read",
                "give -p TEXT, -f FILE (-f - reads standard input) or --ids 1,2,3");
  if (given > 1) throw Error(ErrorCode::usage, "more than one text to read", "give one of -p, -f and --ids");
  if (chat && ids)
    throw Error(ErrorCode::usage, "--chat and --ids together", "a chat template takes a text: give -p or -f");
  if (system && !chat) throw Error(ErrorCode::usage, "--system without --chat", "add --chat");
  for (const std::string& output : outputs) {
    const std::string extension = std::filesystem::path(output).extension().string();
    if (std::find(extensions_.begin(), extensions_.end(), extension) == extensions_.end())
      throw Error(ErrorCode::usage, fmt::format("cannot write \"{}\" files, -o {}", extension, output),
                  "the name must end in one of " + joined(extensions_));
    if (std::error_code ignored; std::filesystem::is_directory(output, ignored))
      throw Error(ErrorCode::usage, fmt::format("{} is a folder, -o", output), "name a file");
  }
  if (threads) set_thread_count(static_cast<int>(*threads));
  if (target) set_target(*target);
  return true;
}

const std::string& Options::model_name() const {
  if (!model)
    throw Error(ErrorCode::usage, "no model given",
                "name one that `regard models` lists, e.g. smollm2, or a file, before the options");
  return *model;
}

Terminal Options::terminal() const { return describe_terminal(STDOUT_FILENO, no_color, std::getenv); }

bool Options::shows_progress() const {
  const char* term = std::getenv("TERM");
  return !quiet && isatty(STDERR_FILENO) && std::string_view(term ? term : "") != "dumb";
}

}  // namespace regard::cli
