// Lines as edits of a small model and as metrics: what is understood has one spelling, and names cells that exist.

#include "fuzz/fuzz_support.h"
#include "intervention/cells.h"
#include "intervention/metric.h"

using namespace regard;

namespace {

ModelConfig small_model() {
  ModelConfig c;
  c.layers = 4, c.heads = 6, c.kv_heads = 2, c.head_dim = c.value_dim = 8, c.width = 48;
  c.window = {0, 3, 0, 0};
  return c;
}

// A piece per letter.
Tokenizer letters() {
  TokenizerSpec spec;
  spec.pre = "gpt-2";
  for (char c = '!'; c <= '~'; ++c) spec.pieces.push_back(std::string(1, c));
  return Tokenizer(std::move(spec));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ModelConfig config = small_model();
  static const Tokenizer tokenizer = letters();
  static const Runs runs = {{kClean, {10, nullptr}}, {"other", {7, nullptr}}};
  std::string_view rest = testing::text_of(data, size);
  std::vector<Edit> edits;
  std::vector<Cells> cells;
  for (int lines = 0; !rest.empty() && lines < 16; ++lines) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    testing::value_or_error([&] {
      const Edit edit = parse_edit(line);
      const std::string spelled = to_string(edit);
      testing::require(to_string(parse_edit(spelled)) == spelled);
      cells.push_back(resolve(edit, config, runs));
      edits.push_back(edit);
      for (const std::int64_t layer : cells.back().layers) testing::require(layer >= 0 && layer < config.layers);
      for (const std::int64_t position : cells.back().positions) testing::require(position >= 0 && position < 10);
      testing::require(cells.back().matched(config) >= 0);
    });
    testing::value_or_error([&] { to_string(parse_metric(line, tokenizer), tokenizer); });
  }
  testing::value_or_error([&] { check(edits, cells, config); });
  return 0;
}
