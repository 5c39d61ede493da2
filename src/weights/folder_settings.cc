#include "weights/folder_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "tensor/error.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestTemplate = std::uint64_t{16} << 20;

std::optional<JsonPlace> read_if_there(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  return read_json(path);
}

// Of "<s>" or {"content": "<s>", ...}.
std::string text_of_token(const JsonPlace& place) {
  return std::string((place.is_object() ? place.at("content") : place).string());
}

}  // namespace

FolderSettings::FolderSettings(const fs::path& folder)
    : folder(folder),
      tokenizer(read_if_there(folder / "tokenizer_config.json")),
      special(read_if_there(folder / "special_tokens_map.json")),
      generation(read_if_there(folder / "generation_config.json")),
      model(read_if_there(folder / "config.json")) {}

std::optional<JsonPlace> FolderSettings::token_place(std::string_view member) const {
  for (const auto* file : {&tokenizer, &special})
    if (*file)
      if (auto value = (*file)->find(member)) return value;
  return std::nullopt;
}

std::optional<std::string> FolderSettings::token(std::string_view member) const {
  const auto place = token_place(member);
  return place ? std::optional(text_of_token(*place)) : std::nullopt;
}

bool FolderSettings::flag(std::string_view member, bool otherwise) const {
  return tokenizer ? tokenizer->boolean_or(member, otherwise) : otherwise;
}

std::string FolderSettings::family() const {
  std::string name = tokenizer ? tokenizer->string_or("tokenizer_class", "") : "";
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (name.empty() && model) name = model->string_or("model_type", "");
  return name;
}

std::string FolderSettings::chat_template() const {
  const fs::path file = folder / "chat_template.jinja";
  if (fs::exists(file)) return read_whole_file(file, kLargestTemplate);
  const auto place = tokenizer ? tokenizer->find("chat_template") : std::nullopt;
  if (!place) return {};
  if (place->is_object()) return place->string_or("default", "");
  if (!place->is_array()) return std::string(place->string());
  for (const JsonPlace& named : place->elements())
    if (named.at("name").string() == "default") return std::string(named.at("template").string());
  return {};
}

PieceIndex ids_of(const TokenizerSpec& spec) {
  PieceIndex ids(spec.pieces.size());
  for (std::size_t id = 0; id < spec.pieces.size(); ++id)
    if (!spec.pieces[id].empty()) ids.set(spec.pieces, static_cast<std::int32_t>(id));
  return ids;
}

void read_flags(const JsonPlace& place, AddedToken& token) {
  token.special = place.boolean_or("special", false);
  token.normalized = place.boolean_or("normalized", !token.special);
  token.single_word = place.boolean_or("single_word", false);
  token.strip_left = place.boolean_or("lstrip", false);
  token.strip_right = place.boolean_or("rstrip", false);
}

void name_tokens(const FolderSettings& settings, TokenizerSpec& spec) {
  struct Name {
    std::string_view token, id;
    std::optional<std::int32_t> TokenizerSpec::*where;
  };
  static constexpr Name kNames[] = {{"bos_token", "bos_token_id", &TokenizerSpec::bos},
                                    {"eos_token", "eos_token_id", &TokenizerSpec::eos},
                                    {"pad_token", "pad_token_id", &TokenizerSpec::padding},
                                    {"unk_token", "", &TokenizerSpec::unknown},
                                    {"mask_token", "", &TokenizerSpec::mask},
                                    {"sep_token", "sep_token_id", &TokenizerSpec::separator},
                                    {"cls_token", "", &TokenizerSpec::classification}};
  for (const Name& name : kNames)
    if (const auto token = settings.token(name.token)) spec.template_tokens.emplace_back(name.token, *token);
  // "image_token" and the like of a family.
  const auto extra = settings.tokenizer ? settings.tokenizer->find("extra_special_tokens") : std::nullopt;
  if (extra && extra->is_object())
    for (const std::string& name : extra->keys())
      if (const JsonPlace place = extra->at(name); place.is_string() || (place.is_object() && place.find("content")))
        spec.template_tokens.emplace_back(name, text_of_token(place));
  const PieceIndex ids = ids_of(spec);
  // A number, or a list of them; negative means none. So does one past the end: a small vocabulary beside the default
  // of a large one, which transformers writes for whoever says nothing.
  const auto read_ids = [&](const JsonPlace& place) {
    std::vector<std::int32_t> read;
    for (const JsonPlace& one : place.is_array() ? place.elements() : std::vector{place}) {
      const std::int64_t id = one.integer();
      if (id >= 0 && id < std::ssize(spec.pieces)) read.push_back(static_cast<std::int32_t>(id));
    }
    return read;
  };
  for (const Name& name : kNames) {
    if (const auto token = settings.token(name.token))
      if (const auto found = ids.find(spec.pieces, *token)) spec.*name.where = *found;
    if (name.id.empty()) continue;
    for (const auto* file : {&settings.generation, &settings.model}) {
      const auto place = *file ? (*file)->find(name.id) : std::nullopt;
      if (!place) continue;
      const std::vector<std::int32_t> read = read_ids(*place);
      if (!(spec.*name.where) && !read.empty()) spec.*name.where = read.front();
      if (name.where == &TokenizerSpec::eos) spec.ends.insert(spec.ends.end(), read.begin(), read.end());
      if (!read.empty()) break;  // what generation_config.json says is instead of config.json's
    }
  }
  std::sort(spec.ends.begin(), spec.ends.end());
  spec.ends.erase(std::unique(spec.ends.begin(), spec.ends.end()), spec.ends.end());
}

}  // namespace regard
