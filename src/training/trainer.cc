#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "parallel/counter_random.h"
#include "tensor/error.h"
#include "training/model_pass.h"
#include "weights/new_file.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"
#include "weights/sha256.h"

namespace regard {

void Batch::add(std::span<const std::int32_t> ids, std::span<const std::int32_t> next, std::int64_t hidden) {
  const std::int32_t sequence = rows.empty() ? 0 : rows.back().sequence + 1;
  for (std::int64_t t = 0; t < std::ssize(ids); ++t) {
    rows.push_back({ids[t], sequence, t});
    visible.push_back(t != hidden);
  }
  targets.insert(targets.end(), next.begin(), next.end());
}

Trainer::Trainer(ModelConfig config, TokenizerSpec tokenizer, AdamW how, std::uint64_t seed, float dropout)
    : config_(std::move(config)),
      tokenizer_(std::move(tokenizer)),
      how_(how),
      seed_(seed),
      dropout_(dropout),
      parameters_(config_),
      gradients_(config_),
      moments_(std::ssize(parameters_.values())) {
  const double plain = 1 / std::sqrt(static_cast<double>(config_.width));
  const double inwards = plain / std::sqrt(2 * static_cast<double>(config_.layers));
  std::uint64_t stream = 0;
  for (const Parameters::Place& place : parameters_.places()) {
    const CounterRandom random(RandomUse::weights, seed, stream++);
    float* values = parameters_.values().data() + place.begin;
    const bool writes = place.name.ends_with("attn_output.weight") || place.name.ends_with("ffn_down.weight");
    for (std::int64_t i = 0; i < place.rows * place.cols; ++i) {
      if (place.vector)
        values[i] = place.name.ends_with("norm.weight") && !config_.norm_weight_plus_one ? 1.0f : 0.0f;
      else
        values[i] = static_cast<float>(random.normal_at(static_cast<std::uint64_t>(i)) * (writes ? inwards : plain));
    }
  }
}

StepReport Trainer::step(const Batch& batch) {
  const Model current = model();
  const auto now = static_cast<std::uint64_t>(steps_done());
  const Dropout dropout{dropout_, CounterRandom(RandomUse::dropout, seed_).at(now)};
  ModelPass pass(current, batch.rows, Keep::everything, dropout, batch.visible);
  pass.forward();
  std::ranges::fill(gradients_.values(), 0.0f);
  StepReport report{.step = steps_done(), .rate = how_.rate_at(steps_done())};
  report.loss = pass.loss(batch.targets, &gradients_);
  report.gradient_norm = regard::step(how_, report.step, gradients_, moments_, parameters_);
  losses_.push_back(static_cast<float>(report.loss));
  return report;
}

namespace {

constexpr const char* kFormat = "regard training state 2";

OutgoingTensor outgoing(const char* name, std::span<const float> values) {
  return {name,
          safetensors_type(DType::f32),
          {std::ssize(values)},
          static_cast<std::int64_t>(values.size_bytes()),
          [values](const ByteSink& sink) {
            sink(reinterpret_cast<const std::byte*>(values.data()), static_cast<std::int64_t>(values.size_bytes()));
          }};
}

std::string checksum(std::initializer_list<std::span<const float>> all) {
  Sha256 sum;
  for (const std::span<const float> values : all) sum.update(values.data(), values.size_bytes());
  return sum.hex();
}

}  // namespace

void Trainer::save(const std::filesystem::path& path, const std::string& recipe) const {
  const auto span_of = [](const Buffer<float>& b) {
    return std::span<const float>(b.data(), static_cast<std::size_t>(b.size()));
  };
  const std::span<const float> first = span_of(moments_.first), second = span_of(moments_.second);
  const SafetensorsWriter writer(
      {outgoing("parameters", parameters_.values()), outgoing("first_moments", first),
       outgoing("second_moments", second), outgoing("losses", losses_)},
      {{"format", kFormat}, {"recipe", recipe}, {"sha256", checksum({parameters_.values(), first, second, losses_})}});
  const std::filesystem::path beside = path.string() + ".new";
  {
    NewFile file(beside, "");
    writer.write([&](const std::byte* data, std::int64_t bytes) { file.write(data, static_cast<std::size_t>(bytes)); },
                 "", nullptr);
    file.finish();
  }
  std::filesystem::rename(beside, path);
  sync_folder(std::filesystem::absolute(path).parent_path());
}

void Trainer::resume(const std::filesystem::path& path, const std::string& recipe) {
  const auto fail = [&](const char* what) {
    throw Error(ErrorCode::bad_input, fmt::format("{} {}", path.string(), what),
                "give the same command to go on with it, or remove that file");
  };
  SafetensorsFiles files;
  try {
    files = read_safetensors(path);
  } catch (const Error& error) {
    if (error.code == ErrorCode::not_found || error.code == ErrorCode::io) throw;
    fail("is not the state of a training");
  }
  const auto metadata = [&](const char* key) {
    const auto found = files.metadata.find(key);
    return found == files.metadata.end() ? std::string() : found->second;
  };
  if (metadata("format") != kFormat) fail("is not the state of a training");
  if (metadata("recipe") != recipe) fail("is the state of another recipe");
  const auto take = [&](const char* name, std::int64_t count) {
    const auto found = files.tensors.find(name);
    if (found == files.tensors.end() || found->second.format != "F32" || found->second.shape.size() != 1 ||
        (count >= 0 && found->second.shape[0] != count))
      fail("does not fit its recipe");
    std::vector<float> values(static_cast<std::size_t>(found->second.shape[0]));
    if (!values.empty()) std::memcpy(values.data(), found->second.data, values.size() * sizeof(float));
    return values;
  };
  const std::int64_t n = std::ssize(parameters_.values());
  const std::vector<float> values = take("parameters", n), first = take("first_moments", n),
                           second = take("second_moments", n);
  std::vector<float> losses = take("losses", -1);
  // A bit that has turned would be trained on without a word.
  if (metadata("sha256") != checksum({values, first, second, losses})) fail("is damaged");
  losses_ = std::move(losses);
  std::ranges::copy(values, parameters_.values().begin());
  std::ranges::copy(first, moments_.first.begin());
  std::ranges::copy(second, moments_.second.begin());
}

}  // namespace regard
