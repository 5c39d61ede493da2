#include "intervention/metric.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "intervention/embedding.h"
#include "kernels/activation.h"
#include "kernels/softmax.h"
#include "model/forward.h"
#include "parallel/parallel_for.h"
#include "tensor/error.h"
#include "text/display.h"

namespace regard {
namespace {

constexpr std::array<std::string_view, 9> kMetricNames = {"logit", "logprob", "diff", "prob",  "rank",
                                                          "kl",    "tvd",     "jsd",  "cosine"};
constexpr std::int64_t kLogitRows = 64;  // whole rows of logits that live at a time

int tokens_of(MetricKind kind) {
  return kind == MetricKind::diff ? 2 : is_divergence(kind) || of_all_rows(kind) ? 0 : 1;
}

// What follows the word "cosine", without quotes round the whole.
Metric cosine_of(std::string_view text, const Tokenizer& tokenizer) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  Metric metric{.kind = MetricKind::cosine, .ids = {}, .text = std::string(text)};
  if (!text.empty()) metric.ids = tokenizer.encode_ids(text);
  return metric;
}

// Words, of which quoted ones may hold spaces. The quotes stay, so that '12' is a text and 12 an id.
std::vector<std::string> quoted_words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    std::size_t end;
    if (text[i] == '\'' || text[i] == '"') {
      end = text.find(text[i], i + 1);
      while (end != std::string_view::npos && end + 1 < text.size() && text[end + 1] != ' ')
        end = text.find(text[i], end + 1);
      if (end == std::string_view::npos)
        throw Error(ErrorCode::usage, fmt::format("metric \"{}\": a quote is not closed", text),
                    "write for instance logit ' Mary'");
      ++end;
    } else {
      end = std::min(text.find(' ', i), text.size());
    }
    words.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

std::int32_t by_id(std::string_view text, const Tokenizer& tokenizer) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 || id >= tokenizer.vocabulary())
    throw Error(ErrorCode::usage, fmt::format("there is no token {}", text),
                fmt::format("ids go from 0 to {}; a text goes in quotes: \"' 12'\"", tokenizer.vocabulary() - 1));
  return static_cast<std::int32_t>(id);
}

std::int32_t by_text(std::string_view text, const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> ids = tokenizer.encode_ids(text, {.parse_special = true, .add_special = false});
  if (ids.size() == 1) return ids[0];
  std::string split;
  for (const std::int32_t id : ids)
    split += fmt::format("{}'{}' ({})", split.empty() ? "" : ", ", display(tokenizer.bytes(id)), id);
  throw Error(
      ErrorCode::usage, fmt::format("'{}' is not one token but {}", display(text), ids.size()),
      ids.empty()
          ? "name a token"
          : fmt::format(
                "it splits into {}: name one of them by its id, or another text (most words begin with a space)",
                split));
}

}  // namespace

bool is_divergence(MetricKind kind) {
  return kind == MetricKind::kl || kind == MetricKind::tvd || kind == MetricKind::jsd;
}

bool of_all_rows(MetricKind kind) { return kind == MetricKind::cosine; }

Metric default_metric(const ModelConfig& config) {
  return {.kind = config.head ? MetricKind::diff : MetricKind::cosine};
}

std::vector<std::int64_t> mask_rows(const Model& model, std::span<const std::int32_t> ids) {
  std::vector<std::int64_t> rows;
  const std::optional<std::int32_t> mask = model.tokenizer().mask();
  for (std::int64_t i = 0; mask && i < std::ssize(ids); ++i)
    if (ids[i] == *mask) rows.push_back(i);
  return rows;
}

std::int64_t default_row(const Model& model, std::span<const std::int32_t> ids) {
  if (model.config().causal) return -1;
  const std::vector<std::int64_t> rows = mask_rows(model, ids);
  if (rows.size() == 1) return rows[0];
  const std::optional<std::int32_t> mask = model.tokenizer().mask();
  const std::string name = mask ? display(model.tokenizer().bytes(*mask)) : "a mask token";
  throw Error(ErrorCode::usage,
              fmt::format("{} reads both ways, and the text has {} {}: it is not clear where to measure",
                          model.config().family, rows.empty() ? "no" : std::to_string(rows.size()), name),
              "choose a row with --at, or write the mask token once where a word is missing; --metric \"cosine TEXT\" "
              "measures the whole text");
}

std::int32_t parse_token(std::string_view text, const Tokenizer& tokenizer) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
  if (quoted) return by_text(text.substr(1, text.size() - 2), tokenizer);
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  return number ? by_id(text, tokenizer) : by_text(text, tokenizer);
}

Metric parse_metric(std::string_view text, const Tokenizer& tokenizer) {
  if (text == "cosine" || text.starts_with("cosine ")) return cosine_of(text.substr(6), tokenizer);
  const std::vector<std::string> words = quoted_words_of(text);
  const auto found = words.empty() ? kMetricNames.end() : std::find(kMetricNames.begin(), kMetricNames.end(), words[0]);
  if (found == kMetricNames.end()) {
    std::string names;
    for (const std::string_view name : kMetricNames) names += (names.empty() ? "" : ", ") + std::string(name);
    throw Error(ErrorCode::usage, fmt::format("there is no metric \"{}\"", display(text)), "metrics are " + names);
  }
  Metric metric;
  metric.kind = static_cast<MetricKind>(found - kMetricNames.begin());
  const auto given = std::ssize(words) - 1;
  const bool may_lack = metric.kind != MetricKind::logit && metric.kind != MetricKind::logprob;
  if (given != tokens_of(metric.kind) && !(given == 0 && may_lack))
    throw Error(ErrorCode::usage,
                fmt::format("metric \"{}\" takes {} token{}, {} given", words[0], tokens_of(metric.kind),
                            tokens_of(metric.kind) == 1 ? "" : "s", given),
                "write for instance diff ' Mary' ' John' (texts with a space go in quotes)");
  if (given > 0) metric.token = parse_token(words[1], tokenizer);
  if (given > 1) metric.against = parse_token(words[2], tokenizer);
  if (given > 1 && metric.token == metric.against)
    throw Error(ErrorCode::usage, fmt::format("metric \"{}\" compares a token with itself", display(text)),
                "name two tokens");
  return metric;
}

std::string to_string(const Metric& metric, const Tokenizer& tokenizer) {
  std::string text(kMetricNames[static_cast<std::size_t>(metric.kind)]);
  const auto token = [&](std::int32_t id) { return fmt::format(" '{}'", display(tokenizer.bytes(id))); };
  if (tokens_of(metric.kind) > 0) text += token(metric.token);
  if (tokens_of(metric.kind) > 1) text += token(metric.against);
  if (!metric.text.empty()) text += fmt::format(" '{}'", display(metric.text));
  return text;
}

Measure::Measure(const Model& model, Metric metric, View<const float, 2> clean, std::int64_t row)
    : model_(model), metric_(std::move(metric)) {
  const std::int64_t V = model.config().vocabulary;
  if (model.config().head) {
    clean_.resize(static_cast<std::size_t>(V));
    logits(model, clean.slice(row, row + 1), View<float, 2>(clean_.data(), {1, V}));
  } else if (!of_all_rows()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} has no head that says tokens, so {} cannot be measured", model.config().family,
                            kMetricNames[static_cast<std::size_t>(metric_.kind)]),
                "measure --metric \"cosine TEXT\", how near the text's embedding is to another's");
  }
  if (of_all_rows()) {
    embedding_ = metric_.ids.empty() ? embedding(model, clean) : embedding_of(model, metric_.ids);
    base_ = of_text(clean);
    return;
  }
  // The first and second choice; lowest id among equals.
  const auto first = std::max_element(clean_.begin(), clean_.end()) - clean_.begin();
  if (metric_.token < 0) metric_.token = static_cast<std::int32_t>(first);
  if (metric_.against < 0) {
    std::int64_t second = metric_.token == 0 ? 1 : 0;
    for (std::int64_t i = 0; i < V; ++i)
      if (i != metric_.token && clean_[i] > clean_[second]) second = i;
    metric_.against = static_cast<std::int32_t>(second);
  }
  base_ = of_logits(clean_);
}

double Measure::of_logits(std::span<const float> x) const {
  switch (metric_.kind) {
    case MetricKind::logit:
      return x[metric_.token];
    case MetricKind::diff:
      return static_cast<double>(x[metric_.token]) - static_cast<double>(x[metric_.against]);
    case MetricKind::rank:
      if (std::any_of(x.begin(), x.end(), [](float other) { return std::isnan(other); }))
        return std::numeric_limits<double>::quiet_NaN();
      return static_cast<double>(
          std::count_if(x.begin(), x.end(), [&](float other) { return other > x[metric_.token]; }));
    case MetricKind::logprob:
    case MetricKind::prob: {  // as next-token candidates are reported
      const double logprob =
          static_cast<double>(x[metric_.token]) - static_cast<double>(log_sum_exp(x.data(), std::ssize(x)));
      if (metric_.kind == MetricKind::logprob) return logprob;
      auto value = static_cast<float>(logprob);
      exp(&value, &value, 1);
      return value;
    }
    case MetricKind::kl:
      return divergence(clean_, x).kl;
    case MetricKind::tvd:
      return divergence(clean_, x).tvd;
    case MetricKind::jsd:
      return divergence(clean_, x).jsd;
    case MetricKind::cosine:  // not of logits
      break;
  }
  return 0;
}

double Measure::of_text(View<const float, 2> resid) const { return cosine(embedding(model_, resid), embedding_); }

std::vector<double> Measure::of(View<const float, 2> resid) const {
  const ModelConfig& config = model_.config();
  const std::int64_t rows = resid.shape[0];
  std::vector<double> values(static_cast<std::size_t>(rows));
  if (metric_.kind == MetricKind::logit || metric_.kind == MetricKind::diff) {
    const std::int32_t tokens[] = {metric_.token, metric_.against};
    const std::size_t count = metric_.kind == MetricKind::diff ? 2 : 1;
    Tensor<float, 2> some({rows, static_cast<std::int64_t>(count)});
    logits_of(model_, resid, std::span(tokens, count), some.view());
    for (std::int64_t r = 0; r < rows; ++r)
      values[r] = static_cast<double>(some(r, 0)) - (count == 2 ? static_cast<double>(some(r, 1)) : 0.0);
    return values;
  }
  Tensor<float, 2> all({std::min(kLogitRows, rows), config.vocabulary});
  for (std::int64_t first = 0; first < rows; first += kLogitRows) {
    const std::int64_t n = std::min(kLogitRows, rows - first);
    logits(model_, resid.slice(first, first + n), all.view().slice(0, n));
    parallel_for(n, [&](std::int64_t r, int) {
      values[first + r] = of_logits({&all(r, 0), static_cast<std::size_t>(config.vocabulary)});
    });
  }
  return values;
}

double jensen_shannon(std::span<const float> p, std::span<const float> q) {
  double to_p = 0, to_q = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double a = p[i], b = q[i];
    // log(p / m) = -log((1 + q / p) / 2), exactly 0 where both are equal.
    if (a > 0) to_p -= a * std::log((1 + b / a) / 2);
    if (b > 0) to_q -= b * std::log((1 + a / b) / 2);
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  }
  return (to_p + to_q) / 2;
}

Divergence divergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  const std::int64_t n = std::ssize(p_logits);
  std::vector<float> lp(p_logits.size()), lq(p_logits.size()), p(p_logits.size()), q(p_logits.size());
  log_softmax(p_logits.data(), lp.data(), n);
  log_softmax(q_logits.data(), lq.data(), n);
  exp(lp.data(), p.data(), n);
  exp(lq.data(), q.data(), n);
  Divergence d{.kl = 0, .tvd = 0, .jsd = jensen_shannon(p, q)};
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = p[i], b = q[i];
    if (!(a <= 0)) d.kl += a * (static_cast<double>(lp[i]) - static_cast<double>(lq[i]));
    d.tvd += std::fabs(a - b) / 2;
  }
  return d;
}

}  // namespace regard
