#pragma once
// Choosing among numbered things (layers, heads, rows, keys) in the text form that every face uses (FACES.md):
// "5"; "2:7" (7 excluded), "3:", ":-1"; "-1" counts from the end; "1,4"; "*" is all.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace regard {

// The chosen indices of [0, count), in the order written, each once. Error{usage} that names `what` ("row") and says
// which there are: for text that does not parse, an index that is not there, a choice of nothing.
// prompt: where something is to follow a text, the length of that text; negative ones then count from its end.
std::vector<std::int64_t> select(std::string_view text, std::int64_t count, std::string_view what,
                                 std::optional<std::int64_t> prompt = {});

// Whether a choice hangs on how many there are: "*", ":", "3:".
bool open_ended(std::string_view text);

// The same checks for indices that are numbers already; negative ones count from the end. Empty stays empty.
std::vector<std::int64_t> select(const std::vector<std::int64_t>& indices, std::int64_t count, std::string_view what);

}  // namespace regard
