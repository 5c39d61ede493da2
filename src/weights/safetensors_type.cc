#include "weights/safetensors_type.h"

#include <algorithm>
#include <iterator>

namespace regard {

namespace {

constexpr SafetensorsType kTypes[] = {
    {"BOOL", 8, {}},    {"F4", 4, {}},           {"F6_E2M3", 6, {}},        {"F6_E3M2", 6, {}},
    {"U8", 8, {}},      {"I8", 8, {}},           {"F8_E5M2", 8, {}},        {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}}, {"F8_E4M3FNUZ", 8, {}},  {"F8_E5M2FNUZ", 8, {}},    {"I16", 16, {}},
    {"U16", 16, {}},    {"F16", 16, DType::f16}, {"BF16", 16, DType::bf16}, {"I32", 32, {}},
    {"U32", 32, {}},    {"F32", 32, DType::f32}, {"C64", 64, {}},           {"F64", 64, DType::f64},
    {"I64", 64, {}},    {"U64", 64, {}},
};

}  // namespace

const SafetensorsType* find_safetensors_type(std::string_view name) {
  const auto at = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.name == name; });
  return at == std::end(kTypes) ? nullptr : at;
}

const SafetensorsType* safetensors_type(DType type) {
  const auto at = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.dtype == type; });
  return at == std::end(kTypes) ? nullptr : at;
}

}  // namespace regard
