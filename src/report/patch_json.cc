// What a patch did, as a document and as a table.

#include <algorithm>

#include "kernels/softmax.h"
#include "report/csv_writer.h"
#include "report/json_documents.h"
#include "report/patch_result.h"

namespace regard {
namespace {

void receipts(JsonWriter& json, std::string_view kind, std::span<const std::string> names,
              std::span<const Receipt> receipts) {
  std::vector<std::pair<std::string, Receipt>> named;
  for (std::size_t i = 0; i < receipts.size(); ++i) named.emplace_back(names[i], receipts[i]);
  write_receipts(json, named, kind);
}

}  // namespace

std::vector<Shift> shifts(const PatchReport& report, std::size_t most) {
  const std::vector<float>&before = report.patch.before, &after = report.patch.after;
  if (before.empty()) return {};
  const double lse_before = log_sum_exp(before.data(), std::ssize(before));
  const double lse_after = log_sum_exp(after.data(), std::ssize(after));
  std::vector<Shift> found;
  for (const auto* side : {&report.before, &report.after}) {
    for (std::size_t i = 0; i < std::min(most, side->size()); ++i) {
      const TokenPiece& token = (*side)[i].token;
      if (std::any_of(found.begin(), found.end(), [&](const Shift& s) { return s.token.id == token.id; })) continue;
      const auto id = static_cast<std::size_t>(token.id);
      found.push_back({token, before[id] - lse_before, after[id] - lse_after, before[id], after[id]});
    }
  }
  return found;
}

void write_json(Output& out, const PatchReport& report) {
  const PatchResult& patch = report.patch;
  JsonWriter json(out);
  begin_document(json, "patch", &report.model, report.tokens);
  if (!report.source.empty()) write_tokens(json, "source", report.source);
  json.member("metric", report.by.text);
  write_row(json, report.row);
  json.member("base", patch.base);
  json.member("edited", patch.edited);
  json.member("effect", patch.edited - patch.base);
  json.member("contrast", patch.contrast);
  json.member("recovery", patch.recovery);
  json.key("receipts");
  receipts(json, "edit", report.edits, patch.receipts);
  json.key("to");
  receipts(json, "site", report.receivers, patch.received);
  json.key("pattern");  // how far the weights moved that the edits are about
  if (patch.pattern) {
    json.begin_object();
    json.member("jsd_mean", patch.pattern->mean);
    json.member("jsd_max", patch.pattern->max);
    json.member("rows", patch.pattern->rows);
    json.end_object();
  } else {
    json.null();
  }
  write_candidates(json, report.before, "next_before");
  write_candidates(json, report.after, "next_after");
  json.member("kl", patch.divergence.kl);
  json.member("tvd", patch.divergence.tvd);
  json.member("jsd", patch.divergence.jsd);
  json.end_object();
  json.end_document();
}

void write_csv(Output& out, const PatchReport& report) {
  CsvWriter csv(out);
  for (const char* name : {"id", "text", "logit_before", "logprob_before", "logit_after", "logprob_after"})
    csv.text(name);
  csv.end_row();
  for (const Shift& shift : shifts(report, report.before.size())) {
    csv.integer(shift.token.id);
    csv.text(shift.token.bytes);
    csv.number(shift.logit_before);
    csv.number(shift.before);
    csv.number(shift.logit_after);
    csv.number(shift.after);
    csv.end_row();
  }
}

}  // namespace regard
