#include "attention/kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernel.cc"
#include "hwy/foreach_target.h"
// As in kernels/matmul.cc.
#if HWY_TARGET == HWY_EMU128
#pragma GCC push_options
#pragma GCC optimize("Og")
#endif

#include "attention/forward-inl.h"
#include "attention/read-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
using attention::Attend;
using attention::AttendMerge;
using attention::AttendPart;
using attention::StateSize;
using attention::Weigh;
int VectorLanes() { return attention::kLanes; }
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#if HWY_TARGET == HWY_EMU128
#pragma GCC pop_options
#endif

#if HWY_ONCE
namespace regard {

HWY_EXPORT(VectorLanes);
HWY_EXPORT(StateSize);
HWY_EXPORT(Attend);
HWY_EXPORT(AttendPart);
HWY_EXPORT(AttendMerge);
HWY_EXPORT(Weigh);

int vector_lanes() { return HWY_DYNAMIC_DISPATCH(VectorLanes)(); }

void attend(std::span<const LaneBlock> blocks, const Output& output, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(Attend)(blocks, output, scratch);
}

std::int64_t state_size(std::span<const LaneBlock> blocks) { return HWY_DYNAMIC_DISPATCH(StateSize)(blocks); }

void attend_part(std::span<const LaneBlock> blocks, BlockRange range, float* states, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendPart)(blocks, range, states, scratch);
}

void attend_merge(std::span<const LaneBlock> blocks, std::int64_t parts, float* states, const Output& output,
                  Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendMerge)(blocks, parts, states, output, scratch);
}

void weigh(std::span<const LaneBlock> blocks, KeyRange keys, View<const RowSoftmax, 2> softmax, TileSink& sink,
           Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(Weigh)(blocks, keys, softmax, sink, scratch);
}

}  // namespace regard
#endif
