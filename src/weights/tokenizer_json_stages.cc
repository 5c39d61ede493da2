#include "weights/tokenizer_json_stages.h"

#include <fmt/core.h>

#include <algorithm>

#include "text/pretokenizer.h"
#include "weights/base64.h"
#include "weights/gguf.h"

namespace regard {
namespace {

[[noreturn]] void refuse(const JsonPlace& place, std::string_view kind, std::string_view name) {
  throw place.error(fmt::format("is the {} {}, which is not supported", kind, in_quotes(name)), ErrorCode::unsupported,
                    "regard knows the steps of the model families that it runs; this file needs another");
}

// {"String": "x"} or {"Regex": "x"}.
template <class Step>
void read_pattern(const JsonPlace& place, Step& step) {
  if (const auto text = place.find("String")) {
    step.pattern = text->string();
  } else {
    step.pattern = place.at("Regex").string();
    step.expression = true;
  }
}

void read_normalizer(const JsonPlace& place, std::vector<NormalizerStep>& steps) {
  using Kind = NormalizerStep::Kind;
  static constexpr std::pair<std::string_view, Kind> kSimple[] = {{"NFC", Kind::nfc},
                                                                  {"NFD", Kind::nfd},
                                                                  {"NFKC", Kind::nfkc},
                                                                  {"NFKD", Kind::nfkd},
                                                                  {"Nmt", Kind::clean_nmt},
                                                                  {"Lowercase", Kind::lowercase},
                                                                  {"StripAccents", Kind::strip_marks}};
  const std::string_view type = place.at("type").string();
  for (const auto& [name, kind] : kSimple)
    if (type == name) {
      steps.push_back({.kind = kind});
      return;
    }
  if (type == "Sequence") {
    for (const JsonPlace& step : place.at("normalizers").elements()) read_normalizer(step, steps);
  } else if (type == "BertNormalizer") {
    const bool lowercase = place.boolean_or("lowercase", true);
    if (place.boolean_or("clean_text", true)) steps.push_back({.kind = Kind::clean});
    if (place.boolean_or("handle_chinese_chars", true)) steps.push_back({.kind = Kind::space_ideographs});
    if (place.boolean_or("strip_accents", lowercase)) steps.push_back({.kind = Kind::strip_accents});
    if (lowercase) steps.push_back({.kind = Kind::lowercase});
  } else if (type == "Replace") {
    NormalizerStep step{.kind = Kind::replace};
    read_pattern(place.at("pattern"), step);
    step.content = place.at("content").string();
    steps.push_back(std::move(step));
  } else if (type == "Prepend") {
    steps.push_back({.kind = Kind::prepend, .content = std::string(place.at("prepend").string())});
  } else if (type == "Strip") {
    steps.push_back({.kind = Kind::strip,
                     .left = place.boolean_or("strip_left", true),
                     .right = place.boolean_or("strip_right", true)});
  } else if (type == "Precompiled") {
    const auto map = place.find("precompiled_charsmap");
    if (!map || map->string().empty()) return;
    const auto bytes = bytes_of_base64(map->string());
    if (!bytes) throw map->error("is not valid base64");
    steps.push_back({.kind = Kind::charsmap_by_grapheme, .content = *bytes});
  } else {
    refuse(place, "normalizer", type);
  }
}

CutStep::Behaviour read_behaviour(const JsonPlace& place) {
  using Behaviour = CutStep::Behaviour;
  static constexpr std::pair<std::string_view, Behaviour> kNames[] = {
      {"Removed", Behaviour::removed},
      {"Isolated", Behaviour::isolated},
      {"MergedWithPrevious", Behaviour::merged_with_previous},
      {"MergedWithNext", Behaviour::merged_with_next},
      {"Contiguous", Behaviour::contiguous}};
  const auto given = place.find("behavior");
  if (!given) return Behaviour::isolated;
  for (const auto& [name, behaviour] : kNames)
    if (given->string() == name) return behaviour;
  refuse(*given, "behavior", given->string());
}

CutStep read_metaspace(const JsonPlace& place) {
  CutStep step{.kind = CutStep::Kind::metaspace};
  step.content = place.at("replacement").string();
  if (step.content.empty()) throw place.error("has an empty replacement");
  step.cuts = place.boolean_or("split", true);
  step.prefix = place.boolean_or("add_prefix_space", true) ? CutStep::Prefix::always : CutStep::Prefix::never;
  if (const auto scheme = place.find("prepend_scheme")) {
    const std::string_view name = scheme->string();
    if (name == "always")
      step.prefix = CutStep::Prefix::always;
    else if (name == "first")
      step.prefix = CutStep::Prefix::first;
    else if (name == "never")
      step.prefix = CutStep::Prefix::never;
    else
      refuse(*scheme, "prepend scheme", name);
  }
  return step;
}

// `byte_level`: the words so far are spelled in letters for bytes.
void read_pre_tokenizer(const JsonPlace& place, std::vector<CutStep>& steps, bool& byte_level) {
  using Kind = CutStep::Kind;
  const std::string_view type = place.at("type").string();
  if (type == "Sequence") {
    for (const JsonPlace& step : place.at("pretokenizers").elements()) read_pre_tokenizer(step, steps, byte_level);
    return;
  }
  if (byte_level)
    throw place.error("comes behind 'ByteLevel', which is supported as the last step only", ErrorCode::unsupported);
  if (type == "ByteLevel") {
    if (place.boolean_or("add_prefix_space", true)) steps.push_back({.kind = Kind::prefix_space});
    if (place.boolean_or("use_regex", true))
      steps.push_back({.kind = Kind::split, .pattern = std::string(kGpt2Expression), .expression = true});
    byte_level = true;
  } else if (type == "Split") {
    CutStep step{.kind = Kind::split};
    read_pattern(place.at("pattern"), step);
    step.behaviour = read_behaviour(place);
    step.invert = place.boolean_or("invert", false);
    steps.push_back(std::move(step));
  } else if (type == "Metaspace") {
    steps.push_back(read_metaspace(place));
  } else if (type == "Whitespace") {
    steps.push_back({.kind = Kind::words});
  } else if (type == "WhitespaceSplit") {
    steps.push_back({.kind = Kind::white_space});
  } else if (type == "BertPreTokenizer") {
    steps.push_back({.kind = Kind::bert});
  } else if (type == "Digits") {
    steps.push_back({.kind = Kind::digits, .each = place.boolean_or("individual_digits", false)});
  } else if (type == "Punctuation") {
    steps.push_back({.kind = Kind::punctuation, .behaviour = read_behaviour(place)});
  } else {
    refuse(place, "pre-tokenizer", type);
  }
}

std::int32_t read_id(const JsonPlace& place) {
  const std::int64_t id = place.integer();
  if (id < 0 || id > 0x7FFFFFFF) throw place.error("is no id of a token");
  return static_cast<std::int32_t>(id);
}

// The ids that a template puts before and behind a text.
void read_template(const JsonPlace& place, std::vector<std::int32_t>& prefix, std::vector<std::int32_t>& suffix) {
  bool seen = false;
  for (const JsonPlace& piece : place.at("single").elements()) {
    if (const auto sequence = piece.find("Sequence")) {
      if (seen || sequence->at("id").string() != "A")
        throw sequence->error("puts a text into the template that is not the one text", ErrorCode::unsupported);
      seen = true;
      continue;
    }
    const JsonPlace name = piece.at("SpecialToken").at("id");
    for (const JsonPlace& id : place.at("special_tokens").at(name.string()).at("ids").elements())
      (seen ? suffix : prefix).push_back(read_id(id));
  }
  if (!seen) throw place.error("is a template without a place for the text", ErrorCode::unsupported);
}

void read_post_processor(const JsonPlace& place, Stages& stages) {
  const std::string_view type = place.at("type").string();
  std::vector<std::int32_t> prefix, suffix;
  if (type == "Sequence") {
    for (const JsonPlace& step : place.at("processors").elements()) read_post_processor(step, stages);
  } else if (type == "TemplateProcessing") {
    read_template(place, prefix, suffix);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    prefix.push_back(read_id(place.at("cls").at(1)));
    suffix.push_back(read_id(place.at("sep").at(1)));
  } else if (type != "ByteLevel") {  // which only trims ranges
    refuse(place, "post-processor", type);
  }
  stages.prefix.insert(stages.prefix.begin(), prefix.begin(), prefix.end());
  stages.suffix.insert(stages.suffix.end(), suffix.begin(), suffix.end());
}

void read_decoder(const JsonPlace& place, Spelling& spelling) {
  const std::string_view type = place.at("type").string();
  if (type == "Sequence") {
    for (const JsonPlace& step : place.at("decoders").elements()) read_decoder(step, spelling);
  } else if (type == "ByteLevel") {
    spelling.byte_level = true;
  } else if (type == "Metaspace") {
    spelling.space = place.at("replacement").string();
  } else if (type == "Replace") {
    if (place.at("content").string() != " ")
      throw place.error("replaces by something else than a space", ErrorCode::unsupported);
    spelling.space = place.at("pattern").at("String").string();
  } else if (type == "WordPiece") {
    spelling.word_marks = true;
  } else if (type != "ByteFallback" && type != "Fuse" && type != "Strip" && type != "BPEDecoder") {
    refuse(place, "decoder", type);
  }
}

}  // namespace

bool read_stages(const JsonPlace& root, Stages& stages) {
  bool byte_level = false;
  if (const auto place = root.find("normalizer")) read_normalizer(*place, stages.normalizers);
  if (const auto place = root.find("pre_tokenizer")) read_pre_tokenizer(*place, stages.cuts, byte_level);
  if (const auto place = root.find("post_processor")) read_post_processor(*place, stages);
  if (const auto place = root.find("decoder")) read_decoder(*place, stages.spelling);
  stages.spelling.byte_level |= byte_level;
  return byte_level;
}

}  // namespace regard
