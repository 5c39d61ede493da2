#pragma once
// Memory that is owned, zero at first, and in large pages where the system has them: what is read from end to end again
// and again then misses hardly any translation of an address.

#include <cstddef>
#include <cstdint>
#include <utility>

namespace regard {

class LargeBuffer {
 public:
  LargeBuffer() = default;
  explicit LargeBuffer(std::int64_t bytes);  // std::bad_alloc
  LargeBuffer(LargeBuffer&& other) noexcept { swap(other); }
  LargeBuffer& operator=(LargeBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~LargeBuffer();
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::int64_t size() const { return size_; }

 private:
  void swap(LargeBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace regard
