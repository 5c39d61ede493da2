#include "inputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "chat.h"
#include "interrupt.h"
#include "kernels/target.h"
#include "memory.h"
#include "tensor/error.h"
#include "text/utf8.h"
#include "weights/catalogue.h"
#include "weights/default_model.h"

namespace regard::cli {

std::string read_bytes(const std::string& name, std::size_t most) {
  const bool standard = name == "-";
  const std::string shown = standard ? "standard input" : name;
  const int file = standard ? STDIN_FILENO : open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw Error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                fmt::format("cannot read {}: {}", shown, std::strerror(errno)), "check the name after -f");
  std::string text;
  std::vector<char> block(1 << 16);
  int error = 0;
  for (;;) {
    const ssize_t n = ::read(file, block.data(), block.size());
    if (n > 0) text.append(block.data(), static_cast<std::size_t>(n));
    if (text.size() > most) {
      if (!standard) close(file);
      throw Error(ErrorCode::bad_input, fmt::format("{} has more than {} bytes", shown, most), "take a part of it");
    }
    if (n == 0 || interrupted()) break;
    if (n < 0 && errno != EINTR) {
      error = errno;
      break;
    }
  }
  if (!standard) close(file);
  throw_if_interrupted();
  if (error != 0)
    throw Error(ErrorCode::io, fmt::format("cannot read {}: {}", shown, std::strerror(error)),
                standard ? "give it a text, e.g. with a pipe" : "check the name after -f");
  return text;
}

Model load_model(const std::filesystem::path& path, Packing packing) {
  current_target();
  Model model = Model::load(path);
  // Where packed weights would crowd out the file itself, speed would be lost, not won.
  if (packing == Packing::all && model.bytes_to_pack() <= free_memory() / 2) model.pack();
  return model;
}

// Tokens are counted in 32 bits.
constexpr std::size_t kMostText = std::size_t{1} << 31;

std::string read_text(const Options& options) {
  const std::string text = options.prompt ? *options.prompt : read_bytes(*options.file, kMostText);
  if (const auto place = first_invalid_utf8(text)) {
    const std::string where = options.prompt ? "-p" : *options.file == "-" ? "standard input" : *options.file;
    throw Error(ErrorCode::bad_input,
                fmt::format("text is not UTF-8: byte {} is 0x{:02X}, {}", *place,
                            static_cast<unsigned char>(text[*place]), where),
                "convert it first, e.g. with iconv -t UTF-8, or give --ids");
  }
  return text;
}

void check_utf8(const std::string& option, const std::string& text) {
  if (const auto place = first_invalid_utf8(text))
    throw Error(ErrorCode::usage,
                fmt::format("text is not UTF-8: byte {} is 0x{:02X}, {}", *place,
                            static_cast<unsigned char>(text[*place]), option),
                "convert it first, e.g. with iconv -t UTF-8");
}

std::vector<std::int32_t> text_ids(const Options& options, const Tokenizer& tokenizer, const std::string& text) {
  if (!options.chat) return tokenizer.encode_ids(text);
  const std::string system = options.system.value_or("");
  check_utf8("--system", system);
  // A template writes the tokens round a text itself.
  return tokenizer.encode_ids(render_chat(tokenizer, system, text), {.add_special = false});
}

std::vector<std::int32_t> prompt_ids(const Options& options, const Tokenizer& tokenizer) {
  if (!options.ids) return text_ids(options, tokenizer, read_text(options));
  const std::vector<std::int32_t> ids = parse_ids("--ids", *options.ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= tokenizer.vocabulary())
      throw Error(ErrorCode::bad_input, fmt::format("token id {} does not exist, place {} of --ids", ids[i], i),
                  fmt::format("ids go from 0 to {}", tokenizer.vocabulary() - 1));
  }
  return ids;
}

void check_length(const std::vector<std::int32_t>& ids, const ModelConfig& config) {
  if (ids.empty())
    throw Error(ErrorCode::bad_input, "the text is empty: there is nothing to read", "give at least one token");
  if (config.context > 0 && std::ssize(ids) > config.context)
    throw Error(ErrorCode::bad_input,
                fmt::format("the text has {} tokens, the model's context is {}", ids.size(), config.context),
                "shorten it");
}

void require_head(const ModelConfig& config, const std::string& what) {
  if (config.head) return;
  throw Error(ErrorCode::unsupported, fmt::format("this {} has no head that says tokens: {}", config.family, what),
              "look at what it reads (regard read), at what its embedding depends on (regard why), or use a model with "
              "a language-model head");
}

void require_one_text(const Model& model, const std::string& what) {
  if (model.encoder() == nullptr) return;
  throw Error(ErrorCode::unsupported, fmt::format("{} reads a source and a target: {}", model.config().family, what),
              "regard read, logits, generate, why, patch and sweep take it");
}

void require_left_to_right(const ModelConfig& config, const std::string& what) {
  if (config.causal) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} reads both ways and says what is missing, not what comes next: {}", config.family, what),
      "regard logits shows the words for a mask token; to continue a text take a model that reads left to right");
}

ListedModel listed_default_model(const std::filesystem::path& path) {
  return {std::string(kDefaultModel),
          std::string(kDefaultModelDescription),
          std::string(kDefaultModelLicence),
          0,
          default_model_bytes(),
          true,
          path.string()};
}

ModelSummary summary(const std::string& name, const ModelConfig& config, const std::filesystem::path& path) {
  ModelSummary summary{.name = config.name, .family = config.family, .config = config};
  if (name == kDefaultModel || find_named_model(name)) {
    summary.name = name;
  } else if (summary.name.empty()) {
    summary.name = path.stem().string();
  }
  return summary;
}

}  // namespace regard::cli
