#pragma once
// What `read` is asked for, and what that comes to for a model and a text.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intervention_options.h"
#include "model/model.h"
#include "options.h"
#include "reading/request.h"
#include "verbs.h"

namespace regard::cli {

struct ReadChoice {
  Options options;
  InterventionOptions intervention;
  std::optional<std::string> layers, heads, rows, statistics, groups, token, against;
  std::optional<std::int64_t> top;
  bool resid = false;
  // Of an encoder-decoder: which attention, all where it is left out; the decoder's text.
  std::optional<std::string> attention, target, target_ids;
};

struct ReadPlan {
  ReadingRequest request;        // what is read
  std::vector<Statistic> asked;  // what is written
};

// False: help was printed.
bool parse(ReadChoice& choice, const Words& words);
// Error{usage} for what does not go together or is too much to look at.
ReadPlan plan_reading(const ReadChoice& choice, const Model& model, const std::vector<std::int32_t>& ids);
// A remark where it will take long.
void announce(const Options& options, const Model& model, const ReadingRequest& request, std::int64_t tokens);

// `read` of an encoder-decoder: what the source read of itself, the target of itself, the target of the source.
int read_two_texts(const ReadChoice& choice, const Model& model, const std::filesystem::path& path);

}  // namespace regard::cli
