#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "destination.h"
#include "generation_edits.h"
#include "inputs.h"
#include "interrupt.h"
#include "model/forward.h"
#include "model/sampling.h"
#include "model/source.h"
#include "progress_line.h"
#include "report/json_documents.h"
#include "tensor/error.h"
#include "text_stream.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kDefaultTokens = 100;
constexpr std::int64_t kWorthPacking = 16;  // tokens: packing the weights takes as long as some passes

struct Request {
  Options options;
  InterventionOptions intervention;
  SamplingOptions sampling;
  std::int64_t most_tokens = kDefaultTokens;
};

bool parse(Request& request, const Words& words) {
  std::optional<std::int64_t> n, top_k, seed;
  std::optional<double> temperature, top_p, min_p;
  Arguments arguments(
      "generate", "Continues a text. Greedy unless a temperature is given.",
      "Ctrl-C stops and keeps the text so far.\n"
      "--edit changes the model in the prompt and in all that is made; EDIT is as in regard patch. Rows and keys\n"
      "  count from 0 over the prompt and what is made, negative ones from the end of the prompt. Left out, * and 3:\n"
      "  hold for rows that are made too; not those of patch and freeze: a run ends where its text does.\n"
      "regard generate smollm2 -p \"The capital of France is\" --edit \"block edge key=3\"");
  Options& options = request.options;
  options.declare_model(arguments);
  options.declare_text(arguments);
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  arguments.integer("-n,--tokens", n, 0, kAny, "tokens to make at most (default 100)");
  arguments.number("--temperature", temperature, 0, std::numeric_limits<double>::infinity(),
                   "0 is greedy (default; 1 with --top-k, --top-p or --min-p)");
  arguments.integer("--top-k", top_k, 0, kAny, "draw from the k likeliest; 0: all");
  arguments.number("--top-p", top_p, 0, 1, "draw from the likeliest that make up this much; 1: all");
  arguments.number("--min-p", min_p, 0, 1, "leave out what is less likely than this times the likeliest");
  arguments.integer("--seed", seed, 0, kAny, "the same seed draws the same text (default 0)");
  request.intervention.declare_edits(arguments);
  request.intervention.declare_contrast(arguments);
  options.declare_output(arguments, {".json"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return false;
  request.intervention.check_runs_are_used(false);
  request.most_tokens = n.value_or(kDefaultTokens);
  request.sampling = {.temperature = temperature.value_or(top_k || top_p || min_p ? 1 : 0),
                      .top_k = top_k.value_or(0),
                      .top_p = top_p.value_or(1),
                      .min_p = min_p.value_or(0),
                      .seed = static_cast<std::uint64_t>(seed.value_or(0))};
  validate(request.sampling);
  return true;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Feeds the prompt, then chooses, shows and feeds one token after the other. edits: null for none. Gives the error that
// ended a text of which something had been made.
std::optional<Error> generate(const Request& request, const Model& model, const std::vector<std::int32_t>& ids,
                              const Continuation& continuation, ContinuedEdits* edits, GenerateResult& result,
                              bool shows_prompt, const std::function<void(std::string_view)>& show) {
  const Tokenizer& tokenizer = model.tokenizer();
  ProgressLine progress(request.options.shows_progress());
  Tap* const tap = edits != nullptr ? &edits->tap() : nullptr;
  State state(model.config(), 1, continuation.planned_length);
  const Stopwatch prefill;
  Tensor<float, 2> resid;
  if (model.encoder() != nullptr) {  // the text is the source; what is made begins anew
    set_source(model, state, encode(*model.encoder(), ids, edits != nullptr ? edits->source_tap() : nullptr).view());
    resid = feed(model, state, std::span(&model.config().decoder_start, 1), 0, {.tap = tap, .on_rows = {}});
  } else {
    resid = feed(model, state, ids, 0, {.tap = tap, .progress = &progress, .on_rows = {}});
  }
  progress.clear();

  // Choosing the first token belongs to reading the prompt; each further one is a pass of its own.
  Tensor<float, 2> scores({1, model.config().vocabulary});
  double prefill_seconds = prefill.seconds();
  Stopwatch decode;
  std::int64_t passes = 0;
  std::optional<Error> failure;
  result.stopped = "length";
  for (std::int64_t step = 0; step < request.most_tokens; ++step) {
    if (interrupted()) {
      result.stopped = "interrupted";
      break;
    }
    logits(model, resid.view(), scores.view());
    if (model.encoder() != nullptr && tokenizer.padding())  // never said (Marian)
      scores(0, *tokenizer.padding()) = -std::numeric_limits<float>::infinity();
    std::int32_t token;
    try {
      token = sample(scores.data(), scores.size(), request.sampling, static_cast<std::uint64_t>(step));
    } catch (const Error& error) {
      const std::string hint = error.hint + (edits != nullptr ? "; an edit may have to change less" : "");
      if (step == 0) throw Error(error.code, error.message, hint);
      failure.emplace(error.code, fmt::format("after {} tokens, which were kept: {}", step, error.message), hint);
      result.stopped = "error";
      break;
    }
    if (step == 0) {
      prefill_seconds = prefill.seconds();
      decode = Stopwatch();
    }
    if (tokenizer.ends_text(token)) {
      result.stopped = "end";
      break;
    }
    const std::int32_t before = !result.generated.empty() ? result.generated.back().id : ids.back();
    result.generated.push_back(token_pieces(tokenizer, std::array{before, token}).back());
    // Nothing stands before the first one, unless the text that it continues was shown.
    if (result.generated.size() == 1 && !shows_prompt) result.generated.back().gap = false;
    show((result.generated.back().gap ? " " : "") + result.generated.back().bytes);
    if (step + 1 == request.most_tokens) break;
    if (state.cache.length(0) == model.config().context) {
      result.stopped = "context";
      break;
    }
    resid = feed(model, state, std::span(&token, 1), 0, {.tap = tap, .on_rows = {}});
    ++passes;
  }
  result.prefill_tokens_per_second = static_cast<double>(ids.size()) / prefill_seconds;
  result.decode_tokens_per_second =
      passes > 0 ? static_cast<double>(passes) / decode.seconds() : std::numeric_limits<double>::quiet_NaN();
  if (edits != nullptr) result.edits = edits->receipts();
  model.checkpoint().check_intact();
  return failure;
}

}  // namespace

int run_generate(const Words& words) {
  Request request;
  if (!parse(request, words)) return kDone;
  const Options& options = request.options;
  check_outputs(options);
  const auto path = locate(options.model_name());
  const Model model = load_model(path, request.most_tokens >= kWorthPacking ? Packing::all : Packing::none);
  require_left_to_right(model.config(), "a text cannot be continued");
  require_head(model.config(), "a text cannot be continued");
  const std::vector<std::int32_t> ids = prompt_ids(options, model.tokenizer());
  check_length(ids, model.config());
  const Continuation continuation = continuation_of(model, ids, request.most_tokens);
  ProgressLine progress(options.shows_progress());
  const auto edits = generation_edits(request.intervention, model, ids,
                                      request.intervention.chosen_runs(options, model), continuation, &progress);
  progress.clear();

  GenerateResult result{.model = summary(options.model_name(), model.config(), path),
                        .tokens = token_pieces(model.tokenizer(), ids)};
  const Terminal terminal = options.terminal();
  const bool streams = !options.json && options.outputs.empty();
  TextStream stream(terminal.interactive);
  const bool shows_prompt = streams && terminal.interactive && !options.chat && model.encoder() == nullptr;
  if (shows_prompt) stream.add(model.tokenizer().decode(ids));
  const auto failure =
      generate(request, model, ids, continuation, edits.get(), result, shows_prompt, [&](std::string_view bytes) {
        if (streams) stream.add(bytes);
      });
  if (streams) {
    stream.finish();
    if (options.shows_progress())
      remark(options, fmt::format("{} tokens read at {:.0f} a second, {} made at {:.0f} a second, stopped by {}",
                                  ids.size(), result.prefill_tokens_per_second, result.generated.size(),
                                  result.decode_tokens_per_second, result.stopped));
    remark_receipts(options, result);
  } else {
    deliver(options, {.json = [&](Output& out) { write_json(out, result); }, .page = nullptr});
  }
  if (failure) throw *failure;
  if (result.stopped != "interrupted") {
    check_all_matched(result);
    return kDone;
  }
  throw Error(ErrorCode::interrupted,
              fmt::format("interrupted: the {} tokens made so far were kept", result.generated.size()));
}

}  // namespace regard::cli
