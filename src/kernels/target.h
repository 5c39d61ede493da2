#pragma once
// The instruction sets the kernels were built for. All give the same bits (law 3), so a target is a matter of speed and
// of testing.

#include <string>
#include <vector>

namespace regard {

// Names of the targets this processor can run, best first, e.g. {"AVX3", "AVX2", "EMU128"}. EMU128 is plain
// C++ with std::fma: slow, runs anywhere, never chosen by itself.
std::vector<std::string> available_targets();

// Forces one of them, for this process. "" or "best": the best. Unknown or not available here: Error{usage} naming
// those that are, and the one in force stays. The environment variable REGARD_TARGET, read once before main, sets the
// first value. Safe from several threads; a kernel that is running goes on as it began.
void set_target(const std::string& name);

// The one in force. Error{usage} if REGARD_TARGET named none and nothing was set since; Error{unsupported} if this
// processor has no target with fused multiply-add and none was forced. A face calls it before it starts work: kernels
// themselves do not ask.
std::string current_target();

// Makes the first choice, if it was not made yet. simd-inl.h calls it before main, so that no kernel can run on a
// target that nobody chose. Always true.
bool choose_first_target();

}  // namespace regard
