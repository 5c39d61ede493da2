#include "chat.h"

#include <algorithm>

#include "interrupt.h"
#include "report/json_writer.h"
#include "tensor/error.h"
#include "text/display.h"
#include "weights/checked_json.h"
#include "weights/child_process.h"
#include "weights/temporary_folder.h"

namespace regard::cli {
namespace {

// What transformers gives a template (utils/chat_template_utils.py): the same sandbox and settings, the tag
// `generation`, the filter tojson without HTML's escapes, raise_exception and strftime_now. A template is somebody
// else's program: its memory and its time are bounded. Python looks for modules in its own places, not where we are.
constexpr char kScript[] = R"(
import sys
sys.path = [place for place in sys.path if place]
import datetime, json, resource
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 25))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
try:
    from jinja2 import TemplateError, ext, nodes, sandbox
except ImportError:
    sys.exit(3)

class Generation(ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)

def raise_exception(message):
    raise TemplateError(message)

def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

try:
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    jinja = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols])
    jinja.filters["tojson"] = to_json
    jinja.globals["raise_exception"] = raise_exception
    jinja.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    text = jinja.from_string(given["template"]).render(
        messages=given["messages"], tools=None, documents=None, add_generation_prompt=True, **given["tokens"])
    with open(sys.argv[2], "wb") as file:
        file.write(text.encode("utf-8"))
except BaseException as error:
    print(type(error).__name__ if not str(error) else error)
    sys.exit(4)
)";
constexpr int kNoPython = -1, kNoJinja = 3;
constexpr std::uint64_t kLargestText = std::uint64_t{1} << 31;

void write_message(JsonWriter& json, std::string_view role, std::string_view content) {
  json.begin_object();
  json.member("role", role);
  json.member("content", content);
  json.end_object();
}

// What the script reads.
void write_conversation(Output& out, const Tokenizer& tokenizer, std::string_view system, std::string_view user) {
  JsonWriter json(out);
  json.begin_object();
  json.member("template", std::string_view(tokenizer.spec().chat_template));
  json.key("messages");
  json.begin_array();
  if (!system.empty()) write_message(json, "system", system);
  write_message(json, "user", user);
  json.end_array();
  json.key("tokens");
  json.begin_object();
  for (const auto& [name, text] : tokenizer.spec().template_tokens) json.member(name, std::string_view(text));
  json.end_object();
  json.end_object();
}

// The last line that says something: what Python printed before it, a traceback say, tells people less.
std::string last_line(std::string_view log) {
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.remove_suffix(1);
  const std::size_t cut = log.rfind('\n');
  return std::string(cut == std::string_view::npos ? log : log.substr(cut + 1));
}

[[noreturn]] void without_jinja(std::string_view what) {
  throw Error(
      ErrorCode::unsupported, fmt::format("{}, and a chat template needs it, --chat", what),
      "install Python's jinja2 (Debian: apt install python3-jinja2), or write the whole prompt yourself with -p, "
      "special tokens included");
}

}  // namespace

std::string render_chat(const Tokenizer& tokenizer, std::string_view system, std::string_view user) {
  if (tokenizer.spec().chat_template.empty())
    throw Error(ErrorCode::bad_input, "this model has no chat template, --chat",
                "it was made to continue texts: leave --chat away");
  const TemporaryFolder folder = TemporaryFolder::of("regard-chat");
  const std::filesystem::path given = folder.path() / "given.json", text = folder.path() / "text";
  Output out = Output::to_file(given);
  write_conversation(out, tokenizer, system, user);
  out.finish();

  // A Python of one's own, found first, may lack what the system's has.
  int status = kNoPython;
  ChildProcess child;
  child.output = folder.path() / "log";
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (status != kNoPython && status != kNoJinja) break;
    child.command = {python, "-c", kScript, given.string(), text.string()};
    try {
      status = run(child, throw_if_interrupted);
    } catch (const Error& error) {
      if (error.code != ErrorCode::not_found) throw;
    }
  }
  throw_if_interrupted();  // a Ctrl-C stops both Python and us
  if (status == 0) return read_whole_file(text, kLargestText);
  if (status == kNoPython) without_jinja("there is no python3");
  if (status == kNoJinja) without_jinja("python3 has no jinja2");
  const std::string said = last_line(read_whole_file(child.output));
  throw Error(ErrorCode::bad_input,
              fmt::format("the model's chat template cannot be used: {}, --chat",
                          status > 128 ? "it took too much time or memory" : display(said)),
              system.empty() ? "write the whole prompt yourself with -p, special tokens included"
                             : "it may take no --system; or write the whole prompt yourself with -p, special tokens "
                               "included");
}

}  // namespace regard::cli
