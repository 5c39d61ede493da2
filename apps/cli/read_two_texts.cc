#include <algorithm>
#include <chrono>

#include "destination.h"
#include "inputs.h"
#include "interrupt_tap.h"
#include "kernels/softmax.h"
#include "model/forward.h"
#include "model/source.h"
#include "model/taps.h"
#include "progress_line.h"
#include "read_choice.h"
#include "reading/cross_reading.h"
#include "reading/reading_tap.h"
#include "report/read_result.h"
#include "target_text.h"
#include "tensor/error.h"

namespace regard::cli {
namespace {

// The part of a request that is known across texts.
ReadPlan across(ReadPlan plan, const Options& options) {
  std::string left_out;
  const auto drop = [&](std::vector<Statistic>& statistics, bool say) {
    std::erase_if(statistics, [&](Statistic statistic) {
      if (is_known_across(statistic)) return false;
      if (say) left_out += (left_out.empty() ? "" : ", ") + std::string(info(statistic).name);
      return true;
    });
  };
  drop(plan.request.statistics, false);
  drop(plan.asked, true);
  plan.request.resid = false;
  if (!left_out.empty()) remark(options, fmt::format("regard: across texts {} says nothing and is left out", left_out));
  return plan;
}

std::vector<std::string> wanted(const std::optional<std::string>& attention) {
  const std::vector<std::string> all = {"encoder", "decoder", "cross"};
  if (!attention) return all;
  if (std::find(all.begin(), all.end(), *attention) == all.end())
    throw Error(ErrorCode::usage, fmt::format("there is no attention \"{}\", --attention", *attention),
                "there are encoder, decoder and cross");
  return {*attention};
}

Page joined(std::vector<ReadResult>& results, const ReadPageOptions& options) {
  const std::map<std::string, std::string> titles = {{"encoder", "the source, read by itself"},
                                                     {"decoder", "the target, read by itself"},
                                                     {"cross", "the source, read by the target"}};
  Page page{.title = "regard read " + results.front().model.name, .lines = {}};
  for (const ReadResult& result : results) {
    if (results.size() > 1) {
      if (!page.lines.empty()) page.add_line();
      page.add_line("== " + titles.at(result.attention), {.bold = true});
      page.add_line();
    }
    for (Line& line : read_page(result, options).lines) page.lines.push_back(std::move(line));
  }
  return page;
}

}  // namespace

int read_two_texts(const ReadChoice& choice, const Model& model, const std::filesystem::path& path) {
  const Options& options = choice.options;
  const Model& encoder = *model.encoder();
  const std::vector<std::string> attentions = wanted(choice.attention);
  if (attentions.size() > 1 && std::any_of(options.outputs.begin(), options.outputs.end(), [](const std::string& name) {
        return name.ends_with(".npz") || name.ends_with(".csv");
      }))
    throw Error(ErrorCode::usage, "a table holds one attention", "add --attention encoder, decoder or cross");
  if (!choice.intervention.chosen_edits().empty())
    throw Error(ErrorCode::unsupported, "edits of encoder-decoders are not supported", "leave --edit out");
  const std::vector<std::int32_t> source = prompt_ids(options, model.tokenizer());
  check_length(source, encoder.config());

  ProgressLine progress(options.shows_progress());
  InterruptTap watch;
  const auto result = [&](const char* name, std::vector<TokenPiece> tokens, const ReadPlan& plan, Reading reading) {
    ReadResult made{.model = summary(options.model_name(), model.config(), path),
                    .tokens = std::move(tokens),
                    .reading = std::move(reading),
                    .asked = plan.asked,
                    .next = {},
                    .sink = {}};
    made.attention = name;
    return made;
  };
  const auto has = [&](const char* name) {
    return std::find(attentions.begin(), attentions.end(), name) != attentions.end();
  };
  const std::vector<TokenPiece> source_pieces = token_pieces(model.tokenizer(), source);
  std::vector<ReadResult> results;
  const auto start = std::chrono::steady_clock::now();
  Tensor<float, 2> encoded;
  if (has("encoder")) {
    ReadPlan plan = plan_reading(choice, encoder, source);
    ReadingTap reading(encoder, plan.request, source);
    Taps taps({&watch, &reading});
    encoded = encode(encoder, source, &taps);
    results.push_back(result("encoder", source_pieces, plan, reading.finish(nullptr, &watch)));
  } else {
    encoded = encode(encoder, source, &watch);
  }
  const std::vector<std::int32_t> target = target_tokens(model, encoded.view(), choice.target, choice.target_ids);
  check_length(target, model.config());
  const std::vector<TokenPiece> target_pieces = token_pieces(model.tokenizer(), target);
  if (has("decoder") || has("cross")) {
    const ReadPlan plan = plan_reading(choice, model, target), crossing = across(plan, options);
    State state(model.config(), 1, std::ssize(target));
    set_source(model, state, encoded.view());
    ReadingTap reading(model, plan.request, target);
    CrossReadingTap cross(model, crossing.request, std::ssize(target), std::ssize(source));
    Taps taps({&watch, &reading, &cross});
    const auto last = feed(model, state, target, 0, {.tap = &taps, .progress = &progress, .on_rows = {}});
    Tensor<float, 2> scores({1, model.config().vocabulary});
    logits(model, last.view(), scores.view());
    const auto next = best_candidates(model.tokenizer(), {scores.data(), static_cast<std::size_t>(scores.size())},
                                      log_sum_exp(scores.data(), scores.size()), kCandidates);
    if (has("decoder")) {
      results.push_back(result("decoder", target_pieces, plan, reading.finish(&state, &watch)));
      results.back().next = next;
      results.back().bytes_of = named_tokens(results.back().reading, model.tokenizer());
    }
    if (has("cross")) {
      results.push_back(result("cross", target_pieces, crossing, cross.finish()));
      results.back().keys = source_pieces;
      if (results.size() == 1) results.back().next = next;
    }
    for (ReadResult& made : results) made.next_row = std::ssize(made.tokens) - 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (ReadResult& made : results) {
    made.seconds = seconds;
    made.tokens_per_second = static_cast<double>(source.size() + target.size()) / seconds;
  }
  model.checkpoint().check_intact();
  progress.clear();

  constexpr int kFileColumns = 100;
  const auto drawn = [&] {
    return joined(results, {.width = kFileColumns, .statistics = choice.statistics.has_value()});
  };
  deliver(options, {.json =
                        [&](Output& out) {
                          if (results.size() == 1)
                            write_json(out, results.front());
                          else
                            write_json(out, results, source_pieces);
                        },
                    .page =
                        [&](const Terminal& terminal) {
                          return joined(results, {.width = terminal.columns,
                                                  .coloured = terminal.colours != Colours::none,
                                                  .statistics = choice.statistics.has_value()});
                        },
                    .files = {{".npz", [&](Output& out) { write_npz(out, results.front()); }},
                              {".csv", [&](Output& out) { write_csv(out, results.front()); }},
                              {".svg", [&](Output& out) { write_svg(out, drawn()); }},
                              {".html", [&](Output& out) { write_html(out, drawn()); }}}});
  return kDone;
}

}  // namespace regard::cli
