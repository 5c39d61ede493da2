// A reading as a table and as arrays.

#include "report/csv_writer.h"
#include "report/npz_writer.h"
#include "report/read_parts.h"
#include "report/read_result.h"
#include "tensor/error.h"

namespace regard {

void write_csv(Output& out, const ReadResult& result) {
  if (!result.writes(Statistic::weights))
    throw Error(ErrorCode::usage, "a .csv file holds weights, and none were read", "add weights to --stats");
  CsvWriter csv(out);
  for (const char* name : {"layer", "head", "row", "row_text", "key", "key_text", "weight"}) csv.text(name);
  csv.end_row();
  const Reading& reading = result.reading;
  const ReadingRequest& request = reading.request;
  const std::vector<TokenPiece>& keys = result.read_tokens();
  for (std::size_t l = 0; l < request.layers.size(); ++l) {
    for (std::size_t h = 0; h < request.heads.size(); ++h) {
      for (std::size_t r = 0; r < request.rows.size(); ++r) {
        for (std::int64_t key = 0; key < std::ssize(keys); ++key) {
          csv.integer(request.layers[l]);
          csv.integer(request.heads[h]);
          csv.integer(request.rows[r]);
          csv.text(result.tokens[static_cast<std::size_t>(request.rows[r])].bytes);
          csv.integer(key);
          csv.text(keys[static_cast<std::size_t>(key)].bytes);
          csv.number(reading.weights(l, h, r, key));
          csv.end_row();
        }
      }
    }
  }
}

namespace {

template <typename T, int Rank>
void add(NpzWriter& npz, std::string_view name, const Tensor<T, Rank>& values) {
  npz.add(std::string(name), std::span<const T>(values.data(), static_cast<std::size_t>(values.size())),
          {values.shape().begin(), values.shape().end()});
}

void add(NpzWriter& npz, const std::string& name, const std::vector<std::int64_t>& values) {
  npz.add(name, std::span<const std::int64_t>(values), {std::ssize(values)});
}

void add(NpzWriter& npz, const std::string& prefix, const std::vector<TokenPiece>& tokens) {
  std::vector<std::string> texts;
  for (const TokenPiece& token : tokens) texts.push_back(token.bytes);
  npz.add_ids(prefix + "ids", tokens);
  npz.add_texts(prefix + "texts", texts);
}

}  // namespace

void write_npz(Output& out, const ReadResult& result) {
  const Reading& reading = result.reading;
  NpzWriter npz(out);
  add(npz, "", result.tokens);
  if (result.reads_another_text()) add(npz, "key_", result.keys);
  add(npz, "layers", reading.request.layers);
  add(npz, "heads", reading.request.heads);
  add(npz, "rows", reading.request.rows);
  for (const auto& [statistic, values] : reading.per_row)
    if (result.writes(statistic)) add(npz, info(statistic).name, values);
  if (result.writes(Statistic::column_sum)) add(npz, "column_sum", reading.column_sum);
  if (result.writes(Statistic::distances)) {
    add(npz, "distances", reading.distances);
    add(npz, "distance_edges", reading.distance_edges);
  }
  if (result.writes(Statistic::copying)) add(npz, "copying", reading.copying);
  if (result.writes(Statistic::value_norm)) add(npz, "value_norm", reading.value_norm);
  if (result.writes(Statistic::weights)) add(npz, "weights", reading.weights);
  if (result.writes(Statistic::top)) {
    add(npz, "top_weight", reading.top_weight);
    add(npz, "top_key", reading.top_key);
  }
  if (result.writes(Statistic::groups)) add(npz, "groups", reading.group_mass);
  if (result.writes(Statistic::mixing)) add(npz, "mixing", reading.mixing);
  if (result.writes(Statistic::norm_weighted)) add(npz, "norm_weighted", reading.norm_weighted);
  if (result.writes(Statistic::norm_weighted_column_sum))
    add(npz, "norm_weighted_column_sum", reading.norm_weighted_column_sum);
  if (result.writes(Statistic::rollout)) add(npz, "rollout", reading.rollout);
  if (result.writes(Statistic::flow)) {
    add(npz, "flow", reading.flow.positions);
    add(npz, "flow_residual", reading.flow.residual);
  }
  const AnswerArrays answers(reading);
  if (result.writes(Statistic::lens)) answers.add_lens(npz);
  if (result.writes(Statistic::direct)) answers.add_direct(npz);
  if (reading.request.resid) add(npz, "resid", reading.resid);
  npz.finish();
}

}  // namespace regard
