#include "attention/kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernel.cc"
#include "hwy/foreach_target.h"

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

#if HWY_ONCE
namespace regard {

HWY_EXPORT(VectorLanes);
HWY_EXPORT(StateSize);
HWY_EXPORT(Attend);
HWY_EXPORT(AttendPart);
HWY_EXPORT(AttendMerge);
HWY_EXPORT(Weigh);

int vector_lanes() { return HWY_DYNAMIC_DISPATCH(VectorLanes)(); }

void attend(const LaneBlock& lanes, const Output& output, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(Attend)(lanes, output, scratch);
}

std::int64_t state_size(const LaneBlock& lanes) { return HWY_DYNAMIC_DISPATCH(StateSize)(lanes); }

void attend_part(const LaneBlock& lanes, BlockRange blocks, float* states, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendPart)(lanes, blocks, states, scratch);
}

void attend_merge(const LaneBlock& lanes, std::int64_t blocks, float* states, const Output& output, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendMerge)(lanes, blocks, states, output, scratch);
}

void weigh(const LaneBlock& lanes, KeyRange keys, View<const RowSoftmax, 2> softmax, TileSink& sink, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(Weigh)(lanes, keys, softmax, sink, scratch);
}

}  // namespace regard
#endif
