// Writes what the corpora of gguf, safetensors, sentencepiece and edit were begun with: small right files, and the
// wrong ones that others have reported. fuzz_seeds FOLDER. (config and tokenizer_json begin with files of tests/data.)

#include <fmt/core.h>

#include "support/gguf_writer.h"
#include "support/safetensors_builder.h"
#include "support/temp_folder.h"
#include "support/tiny_llama.h"

using namespace regard;
using testing::GgufWriter;

namespace {

std::filesystem::path folder;

void put(const std::string& target, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(folder / target);
  testing::write_file(folder / target / name, bytes);
}

// A model of eight channels with a vocabulary of its own.
GgufWriter tiny(const std::string& tokenizer, const std::vector<std::string>& pieces, DType type = DType::f32) {
  testing::TinyLlama t;
  t.layers = 1, t.heads = 2, t.kv_heads = 1, t.head_dim = 4, t.width = 8, t.hidden = 8, t.context = 32;
  if (type != DType::f32) t.head_dim = 16, t.width = t.hidden = 32;
  t.type = type;
  GgufWriter w = testing::tiny_llama(t);
  for (const char* key : {"model", "tokens", "token_type", "merges", "bos_token_id", "eos_token_id", "pre"})
    w.remove(std::string("tokenizer.ggml.") + key);
  w.remove("llama.vocab_size");
  w.string("tokenizer.ggml.model", tokenizer);
  w.strings("tokenizer.ggml.tokens", pieces);
  GgufWriter::Tensor& embedding = w.tensor_named("token_embd.weight");
  embedding.shape[1] = pieces.size();
  embedding.data.resize(pieces.size() * embedding.shape[0] * 4);
  return w;
}

const std::vector<std::string> kPieces = {"<unk>", "<s>", "</s>", "<0x41>", "\u2581", "a", "b", "ab", "\u2581ab"};
const std::vector<float> kScores = {0, 0, 0, 0, -1, -2, -3, -1, -2};
const std::vector<std::int32_t> kTypes = {2, 3, 3, 6, 1, 1, 1, 1, 1};

GgufWriter sentencepiece(const std::string& kind, DType type = DType::f32) {
  GgufWriter w = tiny(kind, kPieces, type);
  w.f32s("tokenizer.ggml.scores", kScores);
  w.i32s("tokenizer.ggml.token_type", kTypes);
  w.u32("tokenizer.ggml.bos_token_id", 1);
  w.u32("tokenizer.ggml.eos_token_id", 2);
  w.u32("tokenizer.ggml.unknown_token_id", 0);
  return w;
}

// Another architecture: its keys instead of llama's.
GgufWriter of(const std::string& architecture, GgufWriter w) {
  for (GgufWriter::Entry& e : w.entries) {
    if (e.key == "general.architecture") e.value = GgufWriter::encoded(architecture);
    if (e.key.starts_with("llama.")) e.key = architecture + e.key.substr(5);
  }
  const auto vector = [&](const char* name, std::uint64_t n) { w.tensor(name, {n}, std::vector<float>(n, 1)); };
  if (architecture.ends_with("3")) vector("blk.0.attn_q_norm.weight", 4), vector("blk.0.attn_k_norm.weight", 4);
  if (architecture.starts_with("gemma"))
    vector("blk.0.post_attention_norm.weight", 8), vector("blk.0.post_ffw_norm.weight", 8),
        w.u32(architecture + ".attention.sliding_window", 2);
  if (architecture == "qwen2")
    vector("blk.0.attn_q.bias", 8), vector("blk.0.attn_k.bias", 4), vector("blk.0.attn_v.bias", 4);
  return w;
}

void gguf() {
  const auto right = [](const std::string& name, const GgufWriter& w) { put("gguf", name, w.bytes()); };
  right("llama", sentencepiece("llama"));
  for (const char* architecture : {"qwen2", "qwen3", "gemma2", "gemma3"})
    right(architecture, of(architecture, sentencepiece("llama")));
  right("t5", sentencepiece("t5"));
  for (const DType type : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::iq4_nl, DType::f16,
                           DType::bf16, DType::f64})
    right(std::string(info(type).name), sentencepiece("llama", type));
  GgufWriter bert = tiny("bert", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581a", "b", "\u2581ab"});
  bert.u32("tokenizer.ggml.cls_token_id", 2);
  bert.u32("tokenizer.ggml.seperator_token_id", 3);
  bert.u32("tokenizer.ggml.unknown_token_id", 1);
  right("bert", bert);
  for (const char* pre : {"smollm", "qwen2", "llama-bpe", "gpt-2", "gpt-4o"}) {
    GgufWriter bpe = tiny("gpt2", {"a", "b", "ab", "\u0120", "\u0120ab", "<|x|>", "'", "s"});
    bpe.string("tokenizer.ggml.pre", pre);
    bpe.i32s("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 3, 1, 1});
    bpe.strings("tokenizer.ggml.merges", {"a b", "\u0120 ab"});
    bpe.u32("tokenizer.ggml.bos_token_id", 5);
    bpe.u32("tokenizer.ggml.eos_token_id", 5);
    right(std::string("pre-") + pre, bpe);
  }
  GgufWriter scaled = sentencepiece("llama");
  scaled.string("llama.rope.scaling.type", "yarn");
  scaled.f32("llama.rope.scaling.factor", 4);
  scaled.u32("llama.rope.scaling.original_context_length", 16);
  scaled.tensor("rope_freqs.weight", {2}, {1, 8});
  right("yarn", scaled);

  // ggml's tests/test-gguf.cpp and the advisories, on a file of two tensors.
  const auto wrong = [](const std::string& name, const auto& spoil) {
    GgufWriter w;
    w.string("general.architecture", "llama");
    w.tensor("a", {8}, std::vector<float>(8, 1));
    w.tensor("b", {8, 2}, std::vector<float>(16, 1));
    spoil(w);
    put("gguf", "wrong-" + name, w.bytes());
  };
  wrong("magic", [](GgufWriter& w) { w.magic = "GGUX"; });
  wrong("version-1", [](GgufWriter& w) { w.version = 1; });
  wrong("big-endian", [](GgufWriter& w) { w.version = 3 << 24; });
  wrong("tensors", [](GgufWriter& w) { w.n_tensors = ~std::uint64_t{0}; });
  wrong("entries", [](GgufWriter& w) { w.n_entries = ~std::uint64_t{0}; });
  wrong("key-length", [](GgufWriter& w) { w.entries[0].key_length = ~std::uint64_t{0} - 7; });
  wrong("endless-array", [](GgufWriter& w) { w.array("x", 0, std::uint64_t{1} << 63, ""); });
  wrong("array-of-strings", [](GgufWriter& w) { w.array("x", 8, std::uint64_t{1} << 60, ""); });
  wrong("array-of-arrays", [](GgufWriter& w) { w.array("x", 9, 1, std::string(12, '\0')); });
  wrong("twice", [](GgufWriter& w) { w.string("general.architecture", "llama"); });
  wrong("alignment-13", [](GgufWriter& w) { w.u32("general.alignment", 13); });
  wrong("alignment-huge", [](GgufWriter& w) { w.u32("general.alignment", 1u << 31); });
  wrong("alignment-type", [](GgufWriter& w) { w.u64("general.alignment", 32); });
  wrong("dimensions", [](GgufWriter& w) { w.tensors[0].n_dims = 1u << 30; });
  wrong("extents", [](GgufWriter& w) { w.tensors[1].shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40}; });
  wrong("sum-of-sizes", [](GgufWriter& w) {
    for (GgufWriter::Tensor& t : w.tensors) t.type = 24, t.shape = {0x7FFFFFFFFFFFFFC0u};
  });
  wrong("type", [](GgufWriter& w) { w.tensors[0].type = 4; });
  wrong("offset", [](GgufWriter& w) { w.tensors[1].offset = 1; });
  wrong("same-name", [](GgufWriter& w) { w.tensors[1].name = "a"; });
  wrong("data", [](GgufWriter& w) { w.tensors[1].data.clear(); });
}

void safetensors() {
  // Two bytes of the index's length, the index, the file (safetensors_target.cc).
  const auto file = [](const std::string& name, const std::string& bytes, const std::string& index = {}) {
    const std::string length = {static_cast<char>(index.size() & 255), static_cast<char>(index.size() >> 8)};
    put("safetensors", name, length + index + bytes);
  };
  testing::SafetensorsBuilder w;
  w.metadata("format", "pt");
  w.add_f32("a", {2, 1}, {1, 2});
  w.add("b", "F8_E4M3", {3}, "xyz");
  w.add("c", "F16", {0}, "");
  w.add("d", "I64", {}, "12345678");
  file("right", w.bytes());
  const std::string list = R"({"metadata":{"total_size":19},"weight_map":{"a":"shard.safetensors"}})";
  file("index", w.bytes(), list);
  file("index-path", w.bytes(), R"({"weight_map":{"a":"../shard.safetensors"}})");
  file("index-missing", w.bytes(), R"({"weight_map":{"z":"shard.safetensors","a":"other.safetensors"}})");
  file("index-deep", w.bytes(), std::string(600, '[') + std::string(600, ']'));
  const auto header = [&](const std::string& name, const std::string& text, const std::string& data = {}) {
    file("wrong-" + name, testing::safetensors(text, data));
  };
  file("wrong-7-bytes", "1234567");
  file("wrong-length", std::string("<\0\0\0\0\xff\xff\xff", 8));
  header("utf8", "{\"\xff\":1}");
  header("open", "{");
  header("deep", std::string(5000, '['));
  const auto one = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":")" + type + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}}";
  };
  header("overflow", one("F32", "2,18446744073709551614", "0,16"), std::string(16, 'x'));
  header("overflow-bits", one("F32", "2,9223372036854775807", "0,16"), std::string(16, 'x'));
  header("hole", one("F32", "4", "4,20"), std::string(20, 'x'));
  header("trailing", one("F32", "4", "0,16"), std::string(17, 'x'));
  header("short", one("F32", "4", "0,16"), std::string(14, 'x'));
  header("backwards", one("F32", "4", "16,0"), std::string(16, 'x'));
  header("negative", one("F32", "-4", "-16,0"), std::string(16, 'x'));
  header("float", one("F32", "4.0", "0,1.6e1"), std::string(16, 'x'));
  header("type", one("F99", "4", "0,16"), std::string(16, 'x'));
  header("four-bits", one("F4", "3", "0,2"), std::string(2, 'x'));
  header("twice",
         R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
         "xx");
}

// A field of a protocol buffer: its number with wire type 2, and its bytes.
std::string field(int number, const std::string& bytes) {
  std::string message(1, static_cast<char>(number << 3 | 2));
  message.push_back(static_cast<char>(bytes.size()));
  return message + bytes;
}

void sentencepiece_models() {
  for (const char model_type : {1, 2, 3, 4})
    for (const bool mapped : {false, true}) {
      std::string model;
      for (std::size_t i = 0; i < kPieces.size(); ++i)
        model += field(1, field(1, kPieces[i]) + "\x15" + testing::little_endian(kScores[i]) + "\x18" +
                              static_cast<char>(kTypes[i]));
      model += field(2, std::string("\x18") + model_type + "\xA8\x02\x01");
      const std::string charsmap("\x08\0\0\0\0\0\0\0\0\0\0\0x\0", 14);
      model += field(3, (mapped ? field(2, charsmap) : std::string()) + "\x18\x01\x20\x01");
      put("sentencepiece", fmt::format("type-{}{}", model_type, mapped ? "-mapped" : ""), model);
    }
  put("sentencepiece", "wrong-length", "\x0a\xff\xff\xff\xff\x7f");
  put("sentencepiece", "wrong-group", "\x0b\x0b\x0b\x0b");
}

void edits() {
  const char* lines[] = {"block edge row=-1 key=4",
                         "zero z layer=10 head=3",
                         "patch k from=other key=6",
                         "scale edge by=0.5 layer=3 head=2 key=0",
                         "freeze pattern layer=0:3\nfreeze pattern layer=2 row=1:4",
                         "uniform pattern",
                         "permute pattern seed=3 head=1",
                         "mean mlp_out from=other row=2\nmean z",
                         "scale by=2 v key=1",
                         "patch from=other resid_post row=1",
                         "zero v layer=1:3 key=0,5",
                         "zero z row=99999999999999999999",
                         "scale z by=nan",
                         "scale edge by=1e-60",
                         "zero z layer=1\nscale z by=2 head=3",
                         "diff 'a' 'b'",
                         "logprob 12",
                         "kl",
                         "cosine abc",
                         "rank \"a\"",
                         "prob '\\x61'",
                         "block edge layer=1 row=5 key=3",
                         "zero resid_pre",
                         "tvd\njsd"};
  int n = 0;
  for (const char* line : lines) put("edit", fmt::format("line-{:02}", n++), line);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "fuzz_seeds FOLDER\n");
    return 2;
  }
  folder = argv[1];
  gguf();
  safetensors();
  sentencepiece_models();
  edits();
  return 0;
}
