#pragma once
// The JSON documents of FACES.md.

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "intervention/receipt.h"
#include "report/json_writer.h"
#include "report/results.h"

namespace regard {

// {"regard", "verb", "model", "tokens": what every document starts with; the caller adds members and closes it.
void begin_document(JsonWriter& json, std::string_view verb, const ModelSummary* model,
                    std::span<const TokenPiece> tokens);

// "row": where a metric was measured; null for one that is about all rows (-1).
void write_row(JsonWriter& json, std::int64_t row);

// [{"edit","matched","changed"}]; kind: what the names are of.
void write_receipts(JsonWriter& json, std::span<const std::pair<std::string, Receipt>> receipts,
                    std::string_view kind = "edit");
// [{"id","text","bytes"}] under that name.
void write_tokens(JsonWriter& json, std::string_view name, std::span<const TokenPiece> tokens);
void write_candidates(JsonWriter& json, std::span<const Candidate> candidates, std::string_view name = "next");

void write_json(Output& out, const TokensResult& result);
void write_json(Output& out, const LogitsResult& result);
void write_json(Output& out, const GenerateResult& result);
void write_json(Output& out, const InfoResult& result);
void write_json(Output& out, std::span<const ListedModel> models);
void write_json(Output& out, const FetchResult& result);
void write_json(Output& out, const ConvertResult& result);

}  // namespace regard
