#pragma once
// The instruction sets the kernels were built for. All give the same bits (law 3), so a target is a matter of speed and
// of testing.

#include <string>
#include <vector>

namespace regard {

// Names of the targets this processor can run, best first, e.g. {"AVX3_DL", "AVX3", "AVX2", "EMU128"}. EMU128 is plain C++
// with std::fma: slow, runs anywhere, never chosen by itself.
std::vector<std::string> available_targets();

// Forces one of them, for this process. "" or "best": the best. Unknown or not available here: Error{usage} naming those
// that are. The environment variable REGARD_TARGET sets the first value.
void set_target(const std::string& name);

// The one in force. Error{unsupported} if this processor has no target with fused multiply-add and none was forced.
std::string current_target();

}  // namespace regard
