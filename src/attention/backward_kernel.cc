#include "attention/backward_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/backward_kernel.cc"
#include "hwy/foreach_target.h"
// As in kernels/matmul.cc.
#if HWY_TARGET == HWY_EMU128
#pragma GCC push_options
#pragma GCC optimize("Og")
#endif

#include "attention/backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
using attention::BackwardChunk;
using attention::BackwardDeltas;
using attention::BackwardQueries;
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#if HWY_TARGET == HWY_EMU128
#pragma GCC pop_options
#endif

#if HWY_ONCE
namespace regard {

HWY_EXPORT(BackwardDeltas);
HWY_EXPORT(BackwardChunk);
HWY_EXPORT(BackwardQueries);

void backward_deltas(const BackwardCall& call, BackwardUnit& unit, std::size_t index, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardDeltas)(call, unit, index, scratch);
}

void backward_chunk(const BackwardCall& call, const BackwardUnit& unit, std::int64_t chunk, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardChunk)(call, unit, chunk, scratch);
}

void backward_queries(const BackwardCall& call, const BackwardUnit& unit, std::size_t index) {
  HWY_DYNAMIC_DISPATCH(BackwardQueries)(call, unit, index);
}

}  // namespace regard
#endif
