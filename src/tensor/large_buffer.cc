#include "tensor/large_buffer.h"

#include <sys/mman.h>

#include <new>

namespace regard {

LargeBuffer::LargeBuffer(std::int64_t bytes) {
  if (bytes < 0) throw std::bad_alloc();
  if (bytes == 0) return;
  const auto length = static_cast<std::size_t>(bytes);
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, length, MADV_HUGEPAGE);  // a wish: whether it is granted changes no result
#endif
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

LargeBuffer::~LargeBuffer() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(size_));
}

}  // namespace regard
