#include "report/train_report.h"

#include <cmath>

#include "report/json_documents.h"
#include "report/loss_curve.h"

namespace regard {

void write_json(Output& out, const TrainResult& result) {
  JsonWriter json(out);
  begin_document(json, "train", nullptr, {});
  json.member("path", result.path);
  json.member("steps", std::ssize(result.losses));
  json.member("parameters", result.parameters);
  json.key("loss");
  json.numbers(result.losses);
  const auto part = [&](const char* name, const TextPart& of) {
    json.key(name);
    json.begin_object();
    json.member("bytes", of.bytes);
    json.member("measured_bytes", of.measured);
    json.member("loss", of.loss);
    json.end_object();
  };
  if (result.learnt) part("learnt_text", *result.learnt);
  if (result.held_out) part("held_out_text", *result.held_out);
  json.key("held_out");
  json.begin_array();
  for (const Answered& a : result.answered) {
    json.begin_object();
    json.member("kind", a.kind);
    json.member("language", a.language);
    json.member("asked", a.asked);
    json.member("right", a.right);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_document();
}

Page train_page(const TrainResult& result, int columns) {
  Page page{.title = "train", .lines = {}};
  page.add_line(fmt::format("{} numbers, {} steps; loss in nats:", result.parameters, result.losses.size()));
  for (Line& line : loss_lines(result.losses, columns)) page.lines.push_back(std::move(line));
  page.add_line();
  const double last = loss_stretches(result.losses, 50).back();
  page.add_line(fmt::format("loss at the end {:.4f}, perplexity {:.3f}", last, std::exp(last)));
  const auto part = [&](const char* name, const TextPart& of) {
    page.add_line(fmt::format("  {:<22} {} bytes; of {} the loss is {:.4f}, perplexity of a byte {:.3f}, {:.3f} bits",
                              name, of.bytes, of.measured == of.bytes ? "them" : std::to_string(of.measured), of.loss,
                              std::exp(of.loss), of.loss / std::log(2.0)));
  };
  if (result.learnt) part("what was learnt from:", *result.learnt);
  if (result.held_out) part("what was held out:", *result.held_out);
  if (!result.answered.empty()) page.add_line("right answers to held-out sentences:");
  for (const Answered& a : result.answered)
    page.add_line(fmt::format("  {:<10} {}  {:5.1f} %  ({} of {})", a.kind, a.language,
                              100 * static_cast<double>(a.right) / static_cast<double>(a.asked), a.right, a.asked));
  page.add_line(fmt::format("written to {}: config.json, model.safetensors, tokenizer.json, loss.svg", result.path));
  return page;
}

}  // namespace regard
