#include "weights/hub_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "tensor/error.h"
#include "weights/catalogue.h"
#include "weights/safetensors_index.h"

namespace regard {

namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string extension(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == name.npos || name.find('/', dot) != name.npos ? "" : std::string(name.substr(dot));
}

bool is_terms(std::string_view name) {
  return name == "README.md" || name.starts_with("LICENSE") || name.starts_with("LICENCE") ||
         name.starts_with("NOTICE");
}

bool is_configuration(std::string_view name) {
  if (name == "1_Pooling/config.json") return true;  // sentence-transformers: how an encoder's rows become one
  if (name.find('/') != name.npos) return false;
  if (one_of(name, {"config.json", "generation_config.json", "special_tokens_map.json", "added_tokens.json",
                    "modules.json", "sentence_bert_config.json", "spiece.model", "sentencepiece.bpe.model"}))
    return true;
  if (name.ends_with(".spm")) return true;
  if (!one_of(extension(name), {".json", ".txt", ".model", ".jinja", ".bpe"})) return false;
  return name.starts_with("tokenizer") || name.starts_with("vocab") || name.starts_with("merges") ||
         name.starts_with("chat_template");
}

// The place of "-00001-of-00003.gguf" in a name; npos when it does not end so.
std::size_t split_suffix(std::string_view file) {
  static constexpr std::string_view pattern = "-00000-of-00000.gguf";
  if (file.size() <= pattern.size()) return file.npos;
  const std::size_t at = file.size() - pattern.size();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = file[at + i];
    if (pattern[i] == '0' ? c < '0' || c > '9' : c != pattern[i]) return file.npos;
  }
  return at;
}

void add_gguf(const HubListing& listing, const std::string& file, HubSelection& selection) {
  selection.main_file = first_of_split(file);
  const std::size_t at = split_suffix(file);
  for (const HubFile& other : listing.files) {
    const bool part = at != file.npos && split_suffix(other.name) == at && other.name.size() == file.size() &&
                      other.name.compare(0, at, file, 0, at) == 0 && other.name.substr(at + 6) == file.substr(at + 6);
    if (part || other.name == file) selection.files.push_back(other);
  }
}

std::string named(const HubListing& listing, const std::set<std::string>& files) {
  std::string text;
  for (const std::string& file : files)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", file, human_bytes(listing.find(file)->bytes));
  return text;
}

[[noreturn]] void no_weights(const HubListing& listing, const HubName& name, const std::set<std::string>& ggufs) {
  if (!ggufs.empty())
    throw Error(ErrorCode::not_found,
                fmt::format("{} has several GGUF files: {}", name.repository, named(listing, ggufs)),
                fmt::format("name one: regard fetch {}:{}", name.text(), *ggufs.begin()));
  for (const HubFile& file : listing.files)
    if (one_of(extension(file.name), {".bin", ".pt", ".pth", ".ckpt"}))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} has its weights only as {}, a pickle file, which can run any program when it is read "
                              "and is therefore never fetched",
                              name.repository, file.name),
                  "convert it to safetensors where you trust it, or name a revision that has them: @refs/pr/N");
  throw Error(ErrorCode::not_found, fmt::format("{} has neither safetensors nor GGUF weights", name.repository),
              "name another model");
}

}  // namespace

std::string first_of_split(const std::string& file) {
  const std::size_t at = split_suffix(file);
  return at == file.npos ? file : file.substr(0, at) + "-00001" + file.substr(at + 6);
}

HubSelection select_files(const HubListing& listing, const HubName& name) {
  HubSelection selection;
  std::set<std::string> ggufs;  // of a split set the first
  for (const HubFile& file : listing.files) {
    if (file.name.ends_with(".gguf")) ggufs.insert(first_of_split(file.name));
    if (is_terms(file.name) && file.name.find('/') == file.name.npos) selection.files.push_back(file);
  }
  std::erase_if(ggufs, [&](const std::string& file) { return listing.find(file) == nullptr; });
  const HubFile *single = listing.find(kSafetensorsFile), *index = listing.find(kSafetensorsIndexFile);
  if (!name.file.empty()) {
    if (listing.find(name.file) == nullptr)
      throw Error(ErrorCode::not_found, fmt::format("{} has no file {}", name.repository, name.file),
                  ggufs.empty() ? "it has no GGUF files; leave out :..." : "it has " + named(listing, ggufs));
    add_gguf(listing, name.file, selection);
    return selection;
  }
  if (single == nullptr && index == nullptr) {
    if (ggufs.size() != 1) no_weights(listing, name, ggufs);
    add_gguf(listing, *ggufs.begin(), selection);
    return selection;
  }
  for (const HubFile& file : listing.files)
    if (is_configuration(file.name)) selection.files.push_back(file);
  selection.by_index = single == nullptr;
  selection.files.push_back(single != nullptr ? *single : *index);
  return selection;
}

}  // namespace regard
