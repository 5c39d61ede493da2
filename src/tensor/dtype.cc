#include "tensor/dtype.h"

#include "tensor/error.h"

namespace regard {

const DTypeInfo& info(DType type) {
  static constexpr DTypeInfo table[] = {
      {"f32", 1, 4},        {"f16", 1, 2},      {"bf16", 1, 2},     {"f64", 1, 8},      {"q4_0", 32, 18},
      {"q4_1", 32, 20},     {"q5_0", 32, 22},   {"q5_1", 32, 24},   {"q8_0", 32, 34},   {"q2_k", 256, 84},
      {"q3_k", 256, 110},   {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210}, {"iq4_nl", 32, 18},
      {"iq4_xs", 256, 136}, {"mxfp4", 32, 17},
  };
  return table[static_cast<int>(type)];
}

std::int64_t row_bytes(DType type, std::int64_t elements) {
  const DTypeInfo& t = info(type);
  if (elements < 0 || elements % t.block_elements != 0)
    throw Error(ErrorCode::bad_input, fmt::format("a row of {} elements is not a whole number of {} blocks of {}",
                                                  elements, t.name, t.block_elements));
  return elements / t.block_elements * t.block_bytes;
}

}  // namespace regard
