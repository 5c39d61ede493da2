#pragma once
// A typed window on memory that somebody else owns: a pointer, a shape and a stride per axis (in elements, may be 0 for
// broadcasting or negative). Copying a view copies no data.

#include <array>
#include <cstdint>
#include <type_traits>

namespace regard {

template <typename T, int Rank>
struct View {
  T* data = nullptr;
  std::array<std::int64_t, Rank> shape{};
  std::array<std::int64_t, Rank> stride{};

  View() = default;
  View(T* data, std::array<std::int64_t, Rank> shape, std::array<std::int64_t, Rank> stride)
      : data(data), shape(shape), stride(stride) {}
  // Row-major, without gaps.
  View(T* data, std::array<std::int64_t, Rank> shape) : data(data), shape(shape) {
    std::int64_t step = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      stride[axis] = step;
      step *= shape[axis];
    }
  }
  // A view to write is a view to read.
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T> && !std::is_same_v<U, T>>>
  View(const View<U, Rank>& other) : data(other.data), shape(other.shape), stride(other.stride) {}

  template <typename... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank);
    const std::int64_t at[Rank] = {static_cast<std::int64_t>(index)...};
    std::int64_t offset = 0;
    for (int axis = 0; axis < Rank; ++axis) offset += at[axis] * stride[axis];
    return data[offset];
  }
  // The view one axis lower, at `index` of the first axis.
  View<T, Rank - 1> operator[](std::int64_t index) const requires(Rank > 1) {
    View<T, Rank - 1> part;
    part.data = data + index * stride[0];
    for (int axis = 1; axis < Rank; ++axis) {
      part.shape[axis - 1] = shape[axis];
      part.stride[axis - 1] = stride[axis];
    }
    return part;
  }
  // Rows [begin, end) of the first axis.
  View slice(std::int64_t begin, std::int64_t end) const {
    View part = *this;
    part.data += begin * stride[0];
    part.shape[0] = end - begin;
    return part;
  }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t extent : shape) n *= extent;
    return n;
  }
};

}  // namespace regard
