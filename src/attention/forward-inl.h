// The entry points of the first pass.

#if defined(REGARD_ATTENTION_FORWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_FORWARD_INL_H
#undef REGARD_ATTENTION_FORWARD_INL_H
#else
#define REGARD_ATTENTION_FORWARD_INL_H
#endif

#include "attention/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::attention {

// f(desk) with the desk that fits the blocks: several blocks, or one of few lanes, are narrow.
template <class F>
HWY_INLINE void WithDesk(std::span<const LaneBlock> blocks, Scratch& scratch, F f) {
  if (blocks.front().lanes() <= kNarrowLanes) {
    NarrowDesk desk(blocks, scratch);
    f(desk);
  } else {
    Desk desk(blocks.front(), scratch);
    f(desk);
  }
}

inline void Finish(const Desk& desk, const Output& output) {
  for (std::size_t p = 0; p < desk.panels.size(); ++p) Finish(desk.lanes, desk.panels[p], desk.states[p], output);
}
inline void Finish(const NarrowDesk& desk, const Output& output) {
  for (std::size_t b = 0; b < desk.blocks.size(); ++b) Finish(desk.blocks[b], desk.panels[b], desk.states[b], output);
}
inline std::vector<State> StatesAt(float* memory, const Desk& desk) {
  return StatesAt(memory, desk.panels, desk.value_channels, false);
}
inline std::vector<State> StatesAt(float* memory, const NarrowDesk& desk) {
  return StatesAt(memory, desk.panels, desk.value_channels, true);
}

inline void Attend(std::span<const LaneBlock> blocks, const Output& output, Scratch& scratch) {
  WithDesk(blocks, scratch, [&](auto& desk) {
    const KeyRange reach = reach_of(blocks);
    const BlockRange range = blocks_of(reach);
    for (std::int64_t index = range.begin; index < range.end; ++index) AttendBlock(desk, index, reach, desk.states);
    Finish(desk, output);
  });
}

inline std::int64_t StateSize(std::span<const LaneBlock> blocks) {
  std::int64_t size = 0;
  for (const LaneBlock& block : blocks) {
    const std::vector<Panel> panels = panels_of(block, kLanes);
    size += SizeOf(panels, block.problem->value_channels, block.lanes() <= kNarrowLanes);
  }
  return size;
}

inline void AttendPart(std::span<const LaneBlock> blocks, BlockRange range, float* memory, Scratch& scratch) {
  WithDesk(blocks, scratch, [&](auto& desk) {
    const KeyRange reach = reach_of(blocks);
    for (std::int64_t index = range.begin; index < range.end; ++index) {
      const std::vector<State> states = StatesAt(memory, desk);
      for (const State& state : states) state.clear();
      AttendBlock(desk, index, reach, states);
      memory += SizeOf(states);
    }
  });
}

inline void AttendMerge(std::span<const LaneBlock> blocks, std::int64_t parts, float* memory, const Output& output,
                        Scratch& scratch) {
  WithDesk(blocks, scratch, [&](auto& desk) {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::vector<State> states = StatesAt(memory, desk);
      for (std::size_t i = 0; i < states.size(); ++i) MergeState(states[i], desk.states[i]);
      memory += SizeOf(states);
    }
    Finish(desk, output);
  });
}

}  // namespace regard::HWY_NAMESPACE::attention
HWY_AFTER_NAMESPACE();

#endif
