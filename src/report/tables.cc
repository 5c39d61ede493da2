#include "report/tables.h"

#include <fmt/core.h>

#include <initializer_list>

#include "report/csv_writer.h"
#include "report/npz_writer.h"
#include "report/phrases.h"

namespace regard {
namespace {

void header(CsvWriter& csv, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) csv.text(name);
  csv.end_row();
}

}  // namespace

void write_csv(Output& out, const TokensResult& result) {
  CsvWriter csv(out);
  header(csv, {"position", "id", "text", "bytes"});
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    csv.integer(static_cast<std::int64_t>(i));
    csv.integer(result.tokens[i].id);
    csv.text(result.tokens[i].bytes);
    csv.text(hex(result.tokens[i].bytes));
    csv.end_row();
  }
}

void write_csv(Output& out, const LogitsResult& result) {
  CsvWriter csv(out);
  header(csv, {"id", "text", "logit", "logprob"});
  for (const Candidate& candidate : result.next) {
    csv.integer(candidate.token.id);
    csv.text(candidate.token.bytes);
    csv.number(candidate.logit);
    csv.number(candidate.logprob);
    csv.end_row();
  }
}

void write_npz(Output& out, const LogitsResult& result, std::span<const float> logits) {
  NpzWriter npz(out);
  npz.add_ids("ids", result.tokens);
  npz.add("logits", logits, {static_cast<std::int64_t>(logits.size())});
  npz.add("logsumexp", std::span(&result.log_sum_exp, 1), {});
  npz.add("token_logprob", std::span<const float>(result.token_logprob),
          {static_cast<std::int64_t>(result.token_logprob.size())});
  npz.finish();
}

}  // namespace regard
