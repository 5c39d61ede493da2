// regard VERB MODEL [options]: finds the verb, runs it, and turns what went wrong into one line and an exit status.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <new>

#include "arguments.h"
#include "interrupt.h"
#include "report/results.h"
#include "tensor/error.h"
#include "text/display.h"
#include "text/nearest_word.h"
#include "verbs.h"

namespace regard::cli {
namespace {

struct Verb {
  const char* name;
  const char* does;
  int (*run)(const Words&);
};

constexpr std::array<Verb, 15> kVerbs = {{
    {"models", "what models there are, and which are here", run_models},
    {"fetch", "get a named model, or one of a hub", run_fetch},
    {"convert", "write a model's weights as one safetensors file", run_convert},
    {"info", "shapes, storage and tokenizer of a model", run_info},
    {"tokens", "how a text splits into tokens", run_tokens},
    {"logits", "what comes next, and how likely each token was", run_logits},
    {"generate", "continue a text", run_generate},
    {"read", "what each position read: weights and statistics", run_read},
    {"map", "any rectangle of a pattern at any zoom", run_map},
    {"why", "what an answer depends on: causes beside attention", run_why},
    {"patch", "one run with edits, before and after", run_patch},
    {"sweep", "thousands of what-ifs", run_sweep},
    {"lesson", "attention from three tokens and fractions up to a whole model", run_lesson},
    {"bench", "how fast this machine runs it, beside what it could do", run_bench},
    {"train", "make the small default model again", run_train},
}};

void print_help() {
  fmt::print(
      "regard {}: run a transformer on your own processor and see what every position reads\n\n"
      "regard VERB MODEL [options]\n\n",
      version());
  for (const Verb& verb : kVerbs) fmt::print("  {:<10}{}\n", verb.name, verb.does);
  fmt::print(
      "\nA first look:\n"
      "  regard fetch smollm2\n"
      "  regard read smollm2 -p \"When Mary and John went to the store, John gave a drink to\"\n"
      "\nregard VERB --help says what a verb takes.\n");
}

int run(const Words& words) {
  if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
    print_help();
    return words.empty() ? kUsage : kDone;
  }
  if (words[0] == "--version") {
    fmt::print("regard {}\n", version());
    return kDone;
  }
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) {
    if (words[0] == verb.name) return verb.run({words.begin() + 1, words.end()});
    names.push_back(verb.name);
  }
  const std::string meant = nearest_word(words[0], names);
  throw Error(ErrorCode::usage, fmt::format("unknown verb \"{}\"", words[0]),
              meant.empty() ? "regard --help lists the verbs" : fmt::format("did you mean {}?", meant));
}

// A standard stream that was closed would give its number to the next file opened, and what is meant for a person would
// go into that file.
void occupy_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
      return;
}

// One line, whatever a name held.
int report(const Error& error) {
  const std::string text = error.hint.empty() ? error.message : error.message + ": " + error.hint;
  std::fputs(("regard: " + display(text) + "\n").c_str(), stderr);  // throws nothing: the status is left to tell
  switch (error.code) {
    case ErrorCode::usage:
      return kUsage;
    case ErrorCode::interrupted:
      return kInterrupted;
    default:
      return kBadInput;
  }
}

}  // namespace
}  // namespace regard::cli

int main(int argc, char** argv) {
  using namespace regard;
  try {
    cli::occupy_standard_streams();
    cli::watch_for_interrupts();
    const int status = cli::run({argv + 1, argv + argc});
    if (std::fflush(stdout) != 0) throw Error(ErrorCode::io, "cannot write standard output");
    return status;
  } catch (const Error& error) {
    return cli::report(error);
  } catch (const std::bad_alloc&) {
    return cli::report(Error(ErrorCode::io, "not enough memory",
                             "ask for less at a time: a shorter text, fewer --rows, a smaller --batch"));
  } catch (const std::exception& error) {
    return cli::report(Error(ErrorCode::bad_input, error.what()));
  }
}
