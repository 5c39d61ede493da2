#pragma once
// Training, a step at a time. A step is a function of the recipe, the data and the step's number, so a run that was
// stopped and went on, or ran on other threads, ends at the same bits.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/tap.h"
#include "training/optimizer.h"
#include "training/parameters.h"

namespace regard {

// What one step learns from: whole texts (LayerPass), for every row the token to say next, or -1, and whether it is
// read.
struct Batch {
  std::vector<Row> rows;
  std::vector<std::int32_t> targets;
  std::vector<std::uint8_t> visible;
  // One more text, of these ids; targets[t] belongs to row t. hidden: the position that no row reads, or -1.
  void add(std::span<const std::int32_t> ids, std::span<const std::int32_t> next, std::int64_t hidden = -1);
};
using BatchOf = std::function<Batch(std::int64_t step)>;

struct StepReport {
  std::int64_t step = 0;
  double loss = 0, gradient_norm = 0;
  float rate = 0;
};

class Trainer {
 public:
  // `seed`: of the first weights: normal, standard deviation 1 / sqrt(C), what writes into the residual stream divided
  // by sqrt(2 L) (Radford et al. 2019); norms 1, biases 0.
  // dropout: the probability for attention's weights; which ones fall is a function of seed and step.
  Trainer(ModelConfig config, TokenizerSpec tokenizer, AdamW how, std::uint64_t seed, float dropout = 0);

  std::int64_t steps_done() const { return std::ssize(losses_); }
  // Of every step so far.
  std::span<const float> losses() const { return losses_; }
  StepReport step(const Batch& batch);
  // The model as it is now. It points into the trainer's numbers.
  Model model() const { return Model(parameters_.checkpoint(config_, tokenizer_)); }
  const Parameters& parameters() const { return parameters_; }

  // Everything that the next step depends on, as one safetensors file that is there whole or not at all. `recipe`: what
  // must be equal for a run to go on from it.
  void save(const std::filesystem::path& path, const std::string& recipe) const;
  // Error{bad_input} for the state of another recipe, a damaged one, or a file that is no state.
  void resume(const std::filesystem::path& path, const std::string& recipe);

 private:
  ModelConfig config_;
  TokenizerSpec tokenizer_;
  AdamW how_;
  std::uint64_t seed_;
  float dropout_;
  Parameters parameters_, gradients_;
  Moments moments_;
  std::vector<float> losses_;
};

}  // namespace regard
