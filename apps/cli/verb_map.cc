#include <algorithm>
#include <chrono>
#include <numeric>

#include "destination.h"
#include "inputs.h"
#include "interrupt_tap.h"
#include "progress_line.h"
#include "reading/selection.h"
#include "report/estimate.h"
#include "report/map_result.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kPicture = 512;      // cells a side, where a file or a document is made
constexpr std::int64_t kMostCells = 16384;  // a side

struct MapChoice {
  Options options;
  std::optional<std::int64_t> layer, head;
  std::optional<std::string> rows, keys, size, pool;
};

bool parse(MapChoice& choice, const Words& words) {
  Arguments arguments("map", "Any rectangle of one head's pattern at any zoom, in memory for the picture only.",
                      "RANGE is 5, 2:7 (7 excluded), :-1, 100: or * (also: all).\n"
                      "regard map smollm2 -f book.txt --layer 5 --head 3 -o map.svg");
  Options& options = choice.options;
  options.declare_model(arguments);
  options.declare_text(arguments);
  arguments.integer("--layer", choice.layer, INT32_MIN, INT32_MAX, "which layer; -1 is the last (required)");
  arguments.integer("--head", choice.head, INT32_MIN, INT32_MAX, "which head (required)");
  arguments.text("--rows", choice.rows, "RANGE", "the positions that read (default: all)");
  arguments.text("--keys", choice.keys, "RANGE", "the positions that are read (default: all)");
  arguments.text("--size", choice.size, "WxH",
                 "cells across and down, at most (default: what fits the terminal; 512x512)");
  arguments.text("--pool", choice.pool, "max|sum|mean", "what a cell shows of its weights (default: max)");
  options.declare_output(arguments, {".json", ".npz", ".svg", ".png"});
  options.declare_machine(arguments);
  return options.parse(arguments, words);
}

// A choice that is one piece.
std::pair<std::int64_t, std::int64_t> range(const std::optional<std::string>& text, std::int64_t count,
                                            const char* what) {
  if (!text || *text == "all") return {0, count};
  const std::vector<std::int64_t> chosen = select(*text, count, what);
  for (std::size_t i = 1; i < chosen.size(); ++i)
    if (chosen[i] != chosen[i - 1] + 1)
      throw Error(ErrorCode::usage, fmt::format("\"{}\" is not one piece, --{}s", *text, what), "write FIRST:LAST");
  return {chosen.front(), chosen.back() + 1};
}

// {width, height}
std::pair<std::int64_t, std::int64_t> size(const MapChoice& choice, std::int64_t rows, std::int64_t keys,
                                           std::int64_t last) {
  if (choice.size) {
    const std::size_t cut = choice.size->find('x');
    if (cut == std::string::npos)
      throw Error(ErrorCode::usage, fmt::format("\"{}\" is not a size, --size", *choice.size), "write 512x512");
    return {parse_integer("--size", std::string_view(*choice.size).substr(0, cut), 1, kMostCells),
            parse_integer("--size", std::string_view(*choice.size).substr(cut + 1), 1, kMostCells)};
  }
  if (choice.options.json || !choice.options.outputs.empty()) return {kPicture, kPicture};
  // As wide as the terminal; as tall as looks right: cells are square in colour, twice as tall as wide without.
  const Terminal terminal = choice.options.terminal();
  const std::int64_t width = std::min<std::int64_t>(std::max(terminal.columns - map_margin(last), 8), keys);
  const double shape = static_cast<double>(rows) / static_cast<double>(keys);
  const double height = static_cast<double>(width) * shape * (terminal.colours != Colours::none ? 1 : 0.5);
  return {width, std::clamp<std::int64_t>(static_cast<std::int64_t>(height), std::min<std::int64_t>(rows, width), 200)};
}

MapRequest request(const MapChoice& choice, const ModelConfig& config, std::int64_t tokens) {
  for (const auto& [given, option] : {std::pair{choice.layer, "--layer"}, {choice.head, "--head"}})
    if (!given)
      throw Error(ErrorCode::usage, fmt::format("a map is of one head of one layer, and {} is missing", option),
                  "give --layer and --head");
  MapRequest request;
  request.layer = select({*choice.layer}, config.layers, "layer").front();
  request.head = select({*choice.head}, config.heads, "head").front();
  Rectangle& rectangle = request.rectangle;
  std::tie(rectangle.row_begin, rectangle.row_end) = range(choice.rows, tokens, "row");
  std::tie(rectangle.key_begin, rectangle.key_end) = range(choice.keys, tokens, "key");
  if (choice.pool) request.pooling = parse_pooling(*choice.pool);
  std::tie(request.width, request.height) =
      size(choice, rectangle.row_end - rectangle.row_begin, rectangle.key_end - rectangle.key_begin, rectangle.row_end);
  return request;
}

}  // namespace

int run_map(const Words& words) {
  MapChoice choice;
  if (!parse(choice, words)) return kDone;
  const Options& options = choice.options;
  const auto path = locate(options.model_name());
  const Model model = load_model(path);
  require_one_text(model, "regard read shows its three attentions");
  const std::vector<std::int32_t> ids = prompt_ids(options, model.tokenizer());
  check_length(ids, model.config());
  const MapRequest request = cli::request(choice, model.config(), std::ssize(ids));

  const double share = static_cast<double>(request.layer + 1) / static_cast<double>(model.config().layers);
  const std::int64_t rows = model.config().causal ? request.rectangle.row_end : std::ssize(ids);
  const double seconds = share * estimated_seconds(model, {}, rows);
  if (seconds >= kLongSeconds)
    remark(options, fmt::format("regard: reading {} tokens in {} layers takes about {:.0f} s and {} beside the file",
                                rows, request.layer + 1, seconds,
                                human_bytes(bytes_needed(request, model.config(), std::ssize(ids)))));
  ProgressLine progress(options.shows_progress());
  InterruptTap watch;
  const auto start = std::chrono::steady_clock::now();
  MapResult result{.model = summary(options.model_name(), model.config(), path),
                   .tokens = token_pieces(model.tokenizer(), ids),
                   .map = read_map(model, ids, request, &progress, &watch)};
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  model.checkpoint().check_intact();
  progress.clear();
  deliver(options, {.json = [&](Output& out) { write_json(out, result); },
                    .page =
                        [&](const Terminal& terminal) {
                          return map_page(result,
                                          {.width = terminal.columns, .coloured = terminal.colours != Colours::none});
                        },
                    .files = {{".npz", [&](Output& out) { write_npz(out, result); }},
                              {".svg", [&](Output& out) { write_svg(out, result); }},
                              {".png", [&](Output& out) { write_png(out, result); }}}});
  return kDone;
}

}  // namespace regard::cli
