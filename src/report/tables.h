#pragma once
// Tables for spreadsheets (.csv, RFC 4180) and arrays for NumPy (.npz).

#include <span>

#include "report/output.h"
#include "report/results.h"

namespace regard {

void write_csv(Output& out, const TokensResult& result);
void write_csv(Output& out, const LogitsResult& result);

// `logits`: [V], the whole last row.
void write_npz(Output& out, const LogitsResult& result, std::span<const float> logits);

}  // namespace regard
