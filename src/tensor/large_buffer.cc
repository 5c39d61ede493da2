#include "tensor/large_buffer.h"

#include <sys/mman.h>

#include <limits>
#include <new>

namespace regard {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

void* map(std::size_t length) {
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

// Starts where a large page may start: too much is mapped, and what is before and behind is given back.
void* map_aligned(std::size_t length) {
  auto* memory = static_cast<std::byte*>(map(length + kLargePage));
  const std::size_t before = (kLargePage - reinterpret_cast<std::uintptr_t>(memory) % kLargePage) % kLargePage;
  if (before > 0) munmap(memory, before);
  const std::size_t kept = (length + 4095) / 4096 * 4096;
  if (before + kept < length + kLargePage) munmap(memory + before + kept, length + kLargePage - before - kept);
  return memory + before;
}

}  // namespace

LargeBuffer::LargeBuffer(std::int64_t bytes) {
  if (bytes < 0 || bytes > std::numeric_limits<std::int64_t>::max() / 2) throw std::bad_alloc();
  if (bytes == 0) return;
  const auto length = static_cast<std::size_t>(bytes);
  void* memory = length < kLargePage ? map(length) : map_aligned(length);
#ifdef MADV_HUGEPAGE
  if (length >= kLargePage) madvise(memory, length, MADV_HUGEPAGE);  // a wish: granted or not, no result changes
#endif
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

LargeBuffer::~LargeBuffer() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(size_));
}

}  // namespace regard
