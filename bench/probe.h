#pragma once
// What this processor can do right now: the yardsticks that every benchmark figure is divided by. Clocks and shared
// caches drift, so a benchmark measures them in the same run, interleaved with what it times.

namespace regard::bench {

// GFLOP/s (a fused multiply-add counts as 2) of f32 on the target in force: full vectors, independent chains that stay
// in registers, on `threads` threads at once. About 10 ms; the best of a few slices of it.
double fma_peak(int threads);

// GB/s (1e9 bytes) of reading memory: a buffer far larger than the last cache (512 MiB, allocated at the first call),
// each of `threads` threads its own contiguous part, wide loads. About 50 ms. The best of a few passes.
double read_bandwidth(int threads);

}  // namespace regard::bench
