// The lens and the direct effects of a reading, in JSON and as arrays.

#include "report/json_documents.h"
#include "report/read_parts.h"
#include "text/display.h"

namespace regard {
namespace {

void write_token(JsonWriter& json, const TokenPiece& token) {
  json.begin_object();
  json.member("id", token.id);
  json.member("text", display(token.bytes));
  json.end_object();
}

template <int Rank>
void write_numbers(JsonWriter& json, View<const double, Rank> values) {
  json.begin_array();
  for (std::int64_t i = 0; i < values.shape[0]; ++i) {
    if constexpr (Rank == 1)
      json.number(values(i));
    else
      write_numbers<Rank - 1>(json, values[i]);
  }
  json.end_array();
}

// name -> values, of all that a direct effect consists of.
template <typename Visit>
void each_part(const DirectEffects& direct, Visit&& visit) {
  visit("total", direct.total);
  visit("embedding", direct.embedding);
  visit("attention", direct.attention);
  visit("attention_bias", direct.attention_bias);
  visit("heads", direct.heads);
  visit("mlp", direct.mlp);
  visit("bias", direct.bias);
}

}  // namespace

TokenPiece ReadResult::piece_of(std::int32_t id) const {
  const auto found = bytes_of.find(id);
  return {id, found == bytes_of.end() ? "" : found->second};
}

std::map<std::int32_t, std::string> named_tokens(const Reading& reading, const Tokenizer& tokenizer) {
  std::map<std::int32_t, std::string> named;
  const auto name = [&](std::int32_t id) { named.emplace(id, tokenizer.bytes(id)); };
  for (const std::vector<LensRow>& layer : reading.lens) {
    for (const LensRow& row : layer) {
      for (const Guess& guess : row.top) name(guess.id);
      name(row.final.id);
    }
  }
  for (const std::int32_t id : reading.direct_token) name(id);
  if (reading.request.against) name(*reading.request.against);
  return named;
}

void write_lens(JsonWriter& json, const ReadResult& result) {
  json.key("lens");
  json.begin_array();
  for (const std::vector<LensRow>& layer : result.reading.lens) {
    json.begin_array();
    for (const LensRow& row : layer) {
      json.begin_object();
      std::vector<Candidate> top;
      for (const Guess& guess : row.top) top.push_back(result.candidate(guess));
      write_candidates(json, top, "top");
      json.key("final");
      json.begin_object();
      json.member("id", row.final.id);
      json.member("text", display(result.piece_of(row.final.id).bytes));
      json.member("logit", static_cast<double>(row.final.logit));
      json.member("logprob", static_cast<double>(row.final.logprob));
      json.member("rank", row.rank);
      json.end_object();
      json.end_object();
    }
    json.end_array();
  }
  json.end_array();
}

void write_direct(JsonWriter& json, const ReadResult& result) {
  const Reading& reading = result.reading;
  json.key("direct");
  json.begin_object();
  json.key("token");
  json.begin_array();
  for (const std::int32_t id : reading.direct_token) write_token(json, result.piece_of(id));
  json.end_array();
  json.key("against");
  if (reading.request.against)
    write_token(json, result.piece_of(*reading.request.against));
  else
    json.null();
  each_part(reading.direct, [&](const char* name, const auto& values) {
    json.key(name);
    write_numbers(json, values.view());
  });
  json.end_object();
}

AnswerArrays::AnswerArrays(const Reading& reading) : reading_(reading) {
  for (const std::vector<LensRow>& layer : reading.lens) {
    for (const LensRow& row : layer) {
      for (const Guess& guess : row.top) {
        ids_.push_back(guess.id);
        logits_.push_back(guess.logit);
        logprobs_.push_back(guess.logprob);
      }
      final_ids_.push_back(row.final.id);
      final_logits_.push_back(row.final.logit);
      final_logprobs_.push_back(row.final.logprob);
      ranks_.push_back(row.rank);
    }
  }
}

void AnswerArrays::add_lens(NpzWriter& npz) const {
  const std::vector<std::int64_t> rows = {std::ssize(reading_.lens), std::ssize(reading_.request.rows)};
  std::vector<std::int64_t> top = rows;
  top.push_back(reading_.request.candidates);
  npz.add("lens_id", std::span<const std::int32_t>(ids_), top);
  npz.add("lens_logit", std::span<const float>(logits_), top);
  npz.add("lens_logprob", std::span<const float>(logprobs_), top);
  npz.add("lens_final_id", std::span<const std::int32_t>(final_ids_), rows);
  npz.add("lens_final_logit", std::span<const float>(final_logits_), rows);
  npz.add("lens_final_logprob", std::span<const float>(final_logprobs_), rows);
  npz.add("lens_final_rank", std::span<const std::int64_t>(ranks_), rows);
}

void AnswerArrays::add_direct(NpzWriter& npz) const {
  npz.add("direct_token", std::span<const std::int32_t>(reading_.direct_token), {std::ssize(reading_.direct_token)});
  each_part(reading_.direct, [&](const char* name, const auto& values) {
    npz.add(std::string("direct_") + name,
            std::span<const double>(values.data(), static_cast<std::size_t>(values.size())),
            {values.shape().begin(), values.shape().end()});
  });
}

}  // namespace regard
