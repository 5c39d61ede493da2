#include "chat.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "interrupt.h"
#include "report/json_writer.h"
#include "tensor/error.h"
#include "text/display.h"
#include "weights/child_process.h"

namespace regard::cli {
namespace {

// What transformers gives a template (utils/chat_template_utils.py): the same sandbox and settings, the tag
// `generation`, the filter tojson without HTML's escapes, raise_exception and strftime_now. A template is somebody
// else's program: its memory, its time and what it makes are bounded.
constexpr char kScript[] = R"(
import sys
sys.path = [place for place in sys.path if place]
import datetime, json, resource

def limit(what, most):
    try:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    except (OSError, ValueError):
        pass

limit(resource.RLIMIT_AS, 2 << 30)
limit(resource.RLIMIT_CPU, 20)
limit(resource.RLIMIT_CORE, 0)
try:
    import jinja2
    from jinja2 import TemplateError, ext, nodes, sandbox
except ImportError:
    sys.exit(3)
if tuple(map(int, jinja2.__version__.split(".")[:2])) < (3, 1):
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
    given = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    jinja = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols])
    jinja.filters["tojson"] = to_json
    jinja.globals["raise_exception"] = raise_exception
    jinja.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    text = jinja.from_string(given["template"]).render(
        messages=given["messages"], tools=None, documents=None, add_generation_prompt=True, **given["tokens"])
    made = text.encode("utf-8")
    if len(made) > given["most"]:
        raise TemplateError(f"it makes {len(made)} bytes of the text, more than {given['most']}")
    sys.stdout.buffer.write(made)
    sys.stdout.buffer.flush()
except BaseException as error:
    said = " ".join(str(error)[:2000].split())[:300]
    sys.stderr.buffer.write((said or type(error).__name__).encode("utf-8", "backslashreplace"))
    sys.stderr.buffer.flush()
    sys.exit(4)
)";
constexpr int kNoPython = -1, kNoJinja = 3, kTemplateFails = 4;

// Bytes that a template may make of so many: more than any form round a text, less than fills the memory with tokens.
std::int64_t most_made(std::string_view system, std::string_view user) {
  return (std::int64_t{1} << 20) + 4 * static_cast<std::int64_t>(system.size() + user.size());
}

// A file in memory alone, that has no name: nothing is left of it, and nobody else reads it.
class HiddenFile {
 public:
  HiddenFile() : descriptor_(memfd_create("regard-chat", MFD_CLOEXEC)) {
    if (descriptor_ < 0)
      throw Error(ErrorCode::io, fmt::format("no memory for a chat template: {}", std::strerror(errno)));
  }
  ~HiddenFile() { close(descriptor_); }
  HiddenFile(const HiddenFile&) = delete;
  HiddenFile& operator=(const HiddenFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::string read(std::int64_t most) const {
    std::string all(static_cast<std::size_t>(most), '\0');
    std::size_t size = 0;
    for (ssize_t n = 1; n > 0 && size < all.size(); size += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
      n = pread(descriptor_, all.data() + size, all.size() - size, static_cast<off_t>(size));
    all.resize(size);
    return all;
  }
  void clear() const {
    if (ftruncate(descriptor_, 0) != 0 || lseek(descriptor_, 0, SEEK_SET) != 0)
      throw Error(ErrorCode::io, fmt::format("a chat template's memory cannot be emptied: {}", std::strerror(errno)));
  }
  void rewind() const { lseek(descriptor_, 0, SEEK_SET); }

 private:
  int descriptor_;
};

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
  json.member("most", most_made(system, user));
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
  const HiddenFile given, text, errors;
  Output out = Output::to_descriptor(given.descriptor(), "a chat template's memory");
  write_conversation(out, tokenizer, system, user);
  out.finish();

  ChildProcess child;
  child.input = given.descriptor();
  child.printed = text.descriptor();
  child.errors = errors.descriptor();
  child.environment = {{"PYTHONPATH", ""}};  // an empty place in it would be where we are
  // A Python of one's own, found first, may lack what the system's has.
  int status = kNoPython;
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    given.rewind();
    text.clear();
    errors.clear();
    child.command = {python, "-c", kScript};
    try {
      status = run(child, throw_if_interrupted);
    } catch (const Error& error) {
      if (error.code == ErrorCode::interrupted) throw;
      continue;  // it cannot be started
    }
    throw_if_interrupted();  // a Ctrl-C stops both Python and us
    if (status == 0) return text.read(most_made(system, user));
    if (status == kTemplateFails || status > 128) break;
  }
  constexpr std::int64_t kSaid = 2000;
  std::string said = errors.read(kSaid);
  while (said.ends_with('\n')) said.pop_back();
  said = display(said.substr(said.rfind('\n') + 1));  // of a traceback the line that says most
  if (status == kNoPython) without_jinja("there is no python3");
  if (status == kNoJinja) without_jinja("python3 has no jinja2, or one older than 3.1");
  if (status != kTemplateFails && status < 128) without_jinja(fmt::format("python3 does not run: {}", said));
  const std::string what = status == kTemplateFails ? said
                           : status == 128 + SIGXCPU || status == 128 + SIGKILL
                               ? "it takes too long"
                               : fmt::format("signal {}", status - 128);
  throw Error(ErrorCode::bad_input, fmt::format("the model's chat template cannot be used: {}, --chat", what),
              system.empty() ? "write the whole prompt yourself with -p, special tokens included"
                             : "it may take no --system; or write the whole prompt yourself with -p, special tokens "
                               "included");
}

}  // namespace regard::cli
