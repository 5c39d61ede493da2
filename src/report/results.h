#pragma once
// What the verbs found out, ready to be written as JSON, tables or pages.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intervention/receipt.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace regard {

// The version of this program, "0.1.0".
const char* version();

struct ModelSummary {
  std::string name;                   // as a person calls it
  std::string family;                 // "llama"
  std::optional<ModelConfig> config;  // nothing where only the tokenizer could be read
};

// Every row reads the whole text, and says what stands in its own place instead of what comes next.
inline bool reads_both_ways(const ModelSummary& model) { return model.config && !model.config->causal; }

struct TokenPiece {
  std::int32_t id = 0;
  std::string bytes;  // exactly what it stands for
  bool gap = false;   // a space stands before it where the text is written out, and belongs to no token (WordPiece)
};
std::vector<TokenPiece> token_pieces(const Tokenizer& tokenizer, std::span<const std::int32_t> ids);

struct TokensResult {
  ModelSummary model;
  std::vector<TokenPiece> tokens;
};

struct Candidate {
  TokenPiece token;
  float logit = 0;
  double logprob = 0;
};
inline constexpr std::int64_t kCandidates = 5;  // that stand beside a reading
// The `top` highest of logits [V] (all when top < 0 or more than there are), lowest id first among equals. Not a number
// is the lowest.
std::vector<Candidate> best_candidates(const Tokenizer& tokenizer, std::span<const float> logits, float log_sum_exp,
                                       std::int64_t top);

struct LogitsResult {
  ModelSummary model;
  std::vector<TokenPiece> tokens;
  std::vector<Candidate> next;
  std::int64_t row = 0;  // after which they come, or in whose place they stand where rows read both ways
  float log_sum_exp = 0;
  std::vector<float> token_logprob;  // [T - 1]; empty where rows read both ways: each has seen what it would foretell
};

struct GenerateResult {
  ModelSummary model;
  std::vector<TokenPiece> tokens;  // of the prompt
  std::vector<TokenPiece> generated = {};
  std::string stopped = {};  // "length", "end" (of the text, as the model says), "context", "interrupted"
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;                      // not a number when fewer than two tokens were made
  std::vector<std::pair<std::string, Receipt>> edits = {};  // that were made in the rows that ran
};

struct InfoResult {
  ModelSummary model;
  std::vector<std::string> files;
  std::int64_t bytes = 0;
  std::map<DType, StoredAs> stored;
  std::string tokenizer;  // "byte-level BPE (smollm)"
  std::vector<std::string> targets;
  std::string target;  // in force
  int threads = 0;
  std::int64_t cache_bytes_per_token = 0;
};

struct ListedModel {
  std::string name, description, licence;
  std::int64_t download_bytes = 0, installed_bytes = 0;
  bool here = false;
  std::string path;  // where it is, or will be
};

struct FetchResult {
  ListedModel model;
  std::string licence_file;
  bool was_here = false;
  std::string text = "When Mary and John went to the store, John gave a drink to";  // to try it with
};

struct ConvertResult {
  std::string path;
  std::int64_t tensors = 0, widened = 0, bytes = 0;
};

}  // namespace regard
