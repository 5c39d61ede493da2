#pragma once
// Amounts of memory, as people write them and as the machine has them.

#include <cstdint>
#include <string_view>

namespace regard::cli {

// "500M", "2G", "1.5GB", "800000" (bytes); K, M, G and T are powers of 1024. Error{usage} that names `what`.
std::int64_t parse_bytes(std::string_view what, std::string_view text);
// What programs may still take without others being pushed out; 1 GiB when the system does not say.
std::int64_t free_memory();

}  // namespace regard::cli
