#include "chat.h"

#include <array>

#include "tensor/error.h"

namespace regard::cli {
namespace {

// Templates that write ChatML: <|im_start|>ROLE\nTEXT<|im_end|>\n, differing in the system message that stands when
// none is given.
struct ChatMl {
  std::string_view text;            // the template, to the letter
  std::string_view default_system;  // empty: none
};

constexpr std::array<ChatMl, 4> kKnown = {{
    // SmolLM2-Instruct
    {"{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
     "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
     "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    // SmolLM-Instruct and others
    {"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
     "'\n'}}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
     ""},
    // Qwen1.5-Chat, Qwen2-Instruct
    {"{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
     "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
     "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
     "You are a helpful assistant."},
    {"{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
     "{{ '<|im_start|>system\nYou are a helpful assistant<|im_end|>\n' }}{% endif %}"
     "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
     "You are a helpful assistant"},
}};

void add_message(std::string& text, std::string_view role, std::string_view content) {
  text.append("<|im_start|>").append(role).append("\n").append(content).append("<|im_end|>\n");
}

// Jinja's own spelling of a line feed inside a string is taken for the line feed that it stands for.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == 'n') {
      plain += '\n';
      ++i;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

std::string render_chat(std::string_view chat_template, std::string_view system, std::string_view user) {
  if (chat_template.empty())
    throw Error(ErrorCode::bad_input, "this model has no chat template, --chat",
                "it was made to continue texts: leave --chat away");
  const std::string plain = without_escapes(chat_template);
  for (const ChatMl& known : kKnown) {
    if (plain != known.text) continue;
    std::string text;
    const std::string_view first = system.empty() ? known.default_system : system;
    if (!first.empty()) add_message(text, "system", first);
    add_message(text, "user", user);
    return text + "<|im_start|>assistant\n";
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("this model's chat template is not one that regard knows, --chat (it begins \"{}\")",
                          chat_template.substr(0, 40)),
              "write the whole prompt yourself with -p, special tokens included");
}

}  // namespace regard::cli
