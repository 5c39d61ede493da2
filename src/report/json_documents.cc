#include "report/json_documents.h"

#include "report/phrases.h"

namespace regard {
namespace {

void write_model(JsonWriter& json, const ModelSummary& model) {
  json.begin_object();
  json.member("name", model.name);
  json.member("family", model.family);
  const auto shape = [&](std::string_view name, std::int64_t ModelConfig::*field) {
    json.key(name);
    if (model.config) {
      json.integer((*model.config).*field);
    } else {
      json.null();
    }
  };
  shape("layers", &ModelConfig::layers);
  shape("heads", &ModelConfig::heads);
  shape("kv_heads", &ModelConfig::kv_heads);
  shape("head_dim", &ModelConfig::head_dim);
  shape("value_dim", &ModelConfig::value_dim);
  shape("width", &ModelConfig::width);
  shape("hidden", &ModelConfig::hidden);
  shape("vocabulary", &ModelConfig::vocabulary);
  json.end_object();
}

void listed_members(JsonWriter& json, const ListedModel& model) {
  json.member("name", model.name);
  json.member("description", model.description);
  json.member("licence", model.licence);
  json.member("download_bytes", model.download_bytes);
  json.member("installed_bytes", model.installed_bytes);
  json.member("here", model.here);
  json.member("path", model.path);
}

void token_members(JsonWriter& json, const TokenPiece& token) {
  json.member("id", token.id);
  json.member("text", token.bytes);
}

}  // namespace

void begin_document(JsonWriter& json, std::string_view verb, const ModelSummary* model,
                    std::span<const TokenPiece> tokens) {
  json.begin_object();
  json.member("regard", version());
  json.member("verb", verb);
  json.key("model");
  if (model) {
    write_model(json, *model);
  } else {
    json.null();
  }
  write_tokens(json, "tokens", tokens);
}

void write_receipts(JsonWriter& json, std::span<const std::pair<std::string, Receipt>> receipts,
                    std::string_view kind) {
  json.begin_array();
  for (const auto& [name, receipt] : receipts) {
    json.begin_object();
    json.member(kind, name);
    json.member("matched", receipt.matched);
    json.member("changed", receipt.changed);
    json.end_object();
  }
  json.end_array();
}

void write_tokens(JsonWriter& json, std::string_view name, std::span<const TokenPiece> tokens) {
  json.key(name);
  json.begin_array();
  for (const TokenPiece& token : tokens) {
    json.begin_object();
    token_members(json, token);
    json.member("bytes", hex(token.bytes));
    json.end_object();
  }
  json.end_array();
}

void write_row(JsonWriter& json, std::int64_t row) {
  json.key("row");
  row < 0 ? json.null() : json.integer(row);
}

void write_candidates(JsonWriter& json, std::span<const Candidate> candidates, std::string_view name) {
  json.key(name);
  json.begin_array();
  for (const Candidate& candidate : candidates) {
    json.begin_object();
    token_members(json, candidate.token);
    json.member("logit", static_cast<double>(candidate.logit));
    json.member("logprob", candidate.logprob);
    json.end_object();
  }
  json.end_array();
}

void write_json(Output& out, const TokensResult& result) {
  JsonWriter json(out);
  begin_document(json, "tokens", &result.model, result.tokens);
  json.end_object();
  json.end_document();
}

void write_json(Output& out, const LogitsResult& result) {
  JsonWriter json(out);
  begin_document(json, "logits", &result.model, result.tokens);
  write_candidates(json, result.next);
  json.member("row", result.row);
  json.member("logsumexp", static_cast<double>(result.log_sum_exp));
  json.key("token_logprob");
  if (reads_both_ways(result.model))
    json.null();
  else
    json.numbers(std::span<const float>(result.token_logprob));
  json.end_object();
  json.end_document();
}

void write_json(Output& out, const GenerateResult& result) {
  JsonWriter json(out);
  begin_document(json, "generate", &result.model, result.tokens);
  std::string text;
  json.key("generated");
  json.begin_array();
  for (const TokenPiece& token : result.generated) {
    json.begin_object();
    token_members(json, token);
    json.member("bytes", hex(token.bytes));
    json.end_object();
    text += (token.gap ? " " : "") + token.bytes;
  }
  json.end_array();
  json.member("text", text);
  json.member("stopped", result.stopped);
  json.member("prefill_tokens_per_second", result.prefill_tokens_per_second);
  json.member("decode_tokens_per_second", result.decode_tokens_per_second);
  if (!result.edits.empty()) {
    json.key("receipts");
    write_receipts(json, result.edits);
  }
  json.end_object();
  json.end_document();
}

void write_json(Output& out, const InfoResult& result) {
  JsonWriter json(out);
  begin_document(json, "info", &result.model, {});
  json.key("targets");
  json.begin_array();
  for (const std::string& target : result.targets) json.string(target);
  json.end_array();
  json.member("target", result.target);
  json.member("threads", std::int64_t{result.threads});
  json.key("files");
  json.begin_array();
  for (const std::string& file : result.files) json.string(file);
  json.end_array();
  json.member("bytes", result.bytes);
  json.key("dtypes");
  json.begin_object();
  for (const auto& [dtype, stored] : result.stored) {
    json.key(info(dtype).name);
    json.begin_object();
    json.member("tensors", stored.tensors);
    json.member("bytes", stored.bytes);
    json.end_object();
  }
  json.end_object();
  json.member("tokenizer", result.tokenizer);
  if (result.model.config) {
    json.member("causal", result.model.config->causal);  // false: rows read both ways
    json.member("head", result.model.config->head);      // false: it says no tokens
  }
  json.key("window");  // [layer]: keys that a row sees on its left, itself included (and on its right as many, where
                       // rows read both ways), null = all
  json.begin_array();
  if (result.model.config) {
    for (const std::int64_t window : result.model.config->window) {
      if (window > 0) {
        json.integer(window);
      } else {
        json.null();
      }
    }
  }
  json.end_array();
  json.key("context");
  if (result.model.config) {
    json.integer(result.model.config->context);
  } else {
    json.null();
  }
  json.member("cache_bytes_per_token", result.cache_bytes_per_token);
  json.end_object();
  json.end_document();
}

void write_json(Output& out, std::span<const ListedModel> models) {
  JsonWriter json(out);
  begin_document(json, "models", nullptr, {});
  json.key("models");
  json.begin_array();
  for (const ListedModel& model : models) {
    json.begin_object();
    listed_members(json, model);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_document();
}

void write_json(Output& out, const FetchResult& result) {
  JsonWriter json(out);
  begin_document(json, "fetch", nullptr, {});
  json.key("fetched");
  json.begin_object();
  listed_members(json, result.model);
  json.member("licence_file", result.licence_file);
  json.member("was_here", result.was_here);
  json.end_object();
  json.end_object();
  json.end_document();
}

void write_json(Output& out, const ConvertResult& result) {
  JsonWriter json(out);
  begin_document(json, "convert", nullptr, {});
  json.key("converted");
  json.begin_object();
  json.member("path", result.path);
  json.member("bytes", result.bytes);
  json.member("tensors", result.tensors);
  json.member("widened", result.widened);
  json.end_object();
  json.end_object();
  json.end_document();
}

}  // namespace regard
