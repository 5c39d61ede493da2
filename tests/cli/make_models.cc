// Writes the models that the tests of the command line run, into the folder named by its argument; or, with a second
// one, one model with the chat template that standard input holds, to that file in the folder.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "support/tiny_llama.h"

using namespace regard::testing;

namespace {

constexpr char kChatMl[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const std::filesystem::path folder = argv[1];
  if (argc == 3) {
    GgufWriter model = tiny_llama();
    model.string("tokenizer.chat_template", std::string((std::istreambuf_iterator<char>(std::cin)), {}));
    model.write(folder / argv[2]);
    return 0;
  }
  tiny_llama().write(folder / "tiny.gguf");

  // Slow enough to be interrupted: many layers, a long context.
  TinyLlama slow;
  slow.layers = 24;
  slow.context = 16384;
  tiny_llama(slow).write(folder / "slow.gguf");

  GgufWriter chat = tiny_llama();
  chat.string("tokenizer.chat_template", kChatMl);
  chat.write(folder / "chat.gguf");
  GgufWriter other_chat = tiny_llama();
  other_chat.string("tokenizer.chat_template", "{{ raise_exception('no') }}");
  other_chat.write(folder / "other-chat.gguf");

  // A family that nobody has heard of, with a tokenizer that is known.
  GgufWriter unknown = tiny_llama();
  for (auto& entry : unknown.entries)
    if (entry.key == "general.architecture") entry.value = GgufWriter::encoded("unheard-of");
  unknown.write(folder / "unknown.gguf");

  const std::string whole = tiny_llama().bytes();
  std::ofstream(folder / "truncated.gguf", std::ios::binary) << whole.substr(0, whole.size() / 2);
  std::ofstream(folder / "header.gguf", std::ios::binary) << whole.substr(0, 100);
  std::ofstream(folder / "noise.gguf", std::ios::binary) << "this is not a model";
  std::ofstream(folder / "empty.gguf", std::ios::binary);
  return 0;
}
