#include "tensor/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace regard {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

std::align_val_t alignment(std::size_t bytes) {
  return std::align_val_t(bytes < kLargeBytes ? kAlignment : kLargePage);
}

}  // namespace

void* allocate(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment(bytes));
#ifdef MADV_HUGEPAGE
  if (bytes >= kLargeBytes) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  std::memset(memory, 0, bytes);
  return memory;
}

void release(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment(bytes)); }

}  // namespace regard
