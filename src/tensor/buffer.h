#pragma once
// Memory that is owned, aligned to a cache line, and zero at first.

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "tensor/view.h"

namespace regard {

inline constexpr std::size_t kAlignment = 64;

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size) : size_(size) {
    if (size == 0) return;
    data_.reset(static_cast<T*>(::operator new(static_cast<std::size_t>(size) * sizeof(T), std::align_val_t(kAlignment))));
    std::memset(static_cast<void*>(data_.get()), 0, static_cast<std::size_t>(size) * sizeof(T));
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  T& operator[](std::int64_t i) { return data_.get()[i]; }
  const T& operator[](std::int64_t i) const { return data_.get()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(kAlignment)); }
  };
  std::unique_ptr<T, Free> data_;
  std::int64_t size_ = 0;
};

// A buffer with a shape, row-major.
template <typename T, int Rank>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::array<std::int64_t, Rank> shape) : shape_(shape), buffer_(View<T, Rank>(nullptr, shape).size()) {}
  View<T, Rank> view() { return {buffer_.data(), shape_}; }
  View<const T, Rank> view() const { return {buffer_.data(), shape_}; }
  template <typename... Index>
  T& operator()(Index... index) { return view()(index...); }
  template <typename... Index>
  const T& operator()(Index... index) const { return view()(index...); }
  const std::array<std::int64_t, Rank>& shape() const { return shape_; }
  std::int64_t size() const { return buffer_.size(); }
  T* data() { return buffer_.data(); }
  const T* data() const { return buffer_.data(); }

 private:
  std::array<std::int64_t, Rank> shape_{};
  Buffer<T> buffer_;
};

}  // namespace regard
