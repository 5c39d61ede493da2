#pragma once
// Where buffers lie.

#include <cstddef>

namespace regard {

inline constexpr std::size_t kAlignment = 64;  // a cache line
// From this size on memory is aligned to large pages and asked for in them: what is read from end to end again and
// again then misses hardly any translation of an address (one thread reads twice as fast). A wish: granted or not, no
// result changes.
inline constexpr std::size_t kLargeBytes = std::size_t{4} << 20;

// Aligned memory that is all zero; std::bad_alloc. To be given back with the same size.
void* allocate(std::size_t bytes);
void release(void* memory, std::size_t bytes) noexcept;

}  // namespace regard
