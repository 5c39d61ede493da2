#pragma once
// Memory that is owned, aligned (tensor/memory.h), and zero at first.

#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include "tensor/memory.h"
#include "tensor/view.h"

namespace regard {

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  // std::bad_array_new_length if no memory can be that large; a negative size is never meant.
  explicit Buffer(std::int64_t size) : size_(size) {
    if (size < 0 || size > std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(sizeof(T)))
      throw std::bad_array_new_length();
    if (size == 0) return;
    data_ = static_cast<T*>(allocate(static_cast<std::size_t>(size) * sizeof(T)));
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release(data_, static_cast<std::size_t>(size_) * sizeof(T));
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

// A buffer with a shape, row-major.
template <typename T, int Rank>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::array<std::int64_t, Rank> shape)
      : shape_(shape), buffer_(View<T, Rank>(nullptr, shape).size()) {}
  View<T, Rank> view() { return {buffer_.data(), shape_}; }
  View<const T, Rank> view() const { return {buffer_.data(), shape_}; }
  template <typename... Index>
  T& operator()(Index... index) {
    return view()(index...);
  }
  template <typename... Index>
  const T& operator()(Index... index) const {
    return view()(index...);
  }
  const std::array<std::int64_t, Rank>& shape() const { return shape_; }
  std::int64_t size() const { return buffer_.size(); }
  T* data() { return buffer_.data(); }
  const T* data() const { return buffer_.data(); }

 private:
  std::array<std::int64_t, Rank> shape_{};
  Buffer<T> buffer_;
};

}  // namespace regard
