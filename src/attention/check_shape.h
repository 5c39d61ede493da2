#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include <fmt/core.h>

#include "tensor/error.h"
#include "tensor/view.h"

namespace regard {

// Error{bad_input} that names the axis unless the view has the shape the problem asks for. Null data is refused only
// where something is needed there.
template <typename T, int Rank>
void check_shape(const View<T, Rank>& view, std::type_identity_t<std::array<std::int64_t, Rank>> wanted, bool needed,
                 std::string_view name) {
  if (view.data == nullptr && (!needed || View<T, Rank>(nullptr, wanted).size() == 0)) return;
  if (view.data == nullptr) throw Error(ErrorCode::bad_input, fmt::format("attention: {} has no data", name));
  for (int axis = 0; axis < Rank; ++axis) {
    if (view.shape[axis] != wanted[axis]) {
      throw Error(ErrorCode::bad_input, fmt::format("attention: axis {} of {} has {}, the problem {}", axis, name,
                                                    view.shape[axis], wanted[axis]));
    }
  }
}

}  // namespace regard
