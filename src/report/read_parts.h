#pragma once
// Parts of the documents and pages of `read`, each written in a file of its own.

#include <cstdint>
#include <vector>

#include "report/json_writer.h"
#include "report/npz_writer.h"
#include "report/read_result.h"

namespace regard {

// "lens": [layer][row] {"top": [candidates], "final": {"id", "text", "logit", "logprob", "rank"}}
void write_lens(JsonWriter& json, const ReadResult& result);
// "direct": {"token": [row], "against", "total": [row], "heads": [l][h][row], "mlp": [l][row], ...}
void write_direct(JsonWriter& json, const ReadResult& result);

// The same as arrays: lens_id [layer][row][k] ... and direct_heads [l][h][row] ...; must live as long as the archive.
class AnswerArrays {
 public:
  explicit AnswerArrays(const Reading& reading);
  void add_lens(NpzWriter& npz) const;
  void add_direct(NpzWriter& npz) const;

 private:
  const Reading& reading_;
  std::vector<std::int32_t> ids_, final_ids_;
  std::vector<float> logits_, logprobs_, final_logits_, final_logprobs_;
  std::vector<std::int64_t> ranks_;
};

// For a person: what the row at `index` of the chosen ones would say after each layer, and which parts add most to its
// answer.
void add_lens(Page& page, const ReadResult& result, std::size_t index, int width);
void add_direct(Page& page, const ReadResult& result, std::size_t index, int width);

}  // namespace regard
