#pragma once
// The verbs, one file each. A verb gets the words after it and gives the exit status; what goes wrong leaves as
// regard::Error.

#include <string>
#include <vector>

namespace regard::cli {

using Words = std::vector<std::string>;

int run_models(const Words& words);
int run_fetch(const Words& words);
int run_convert(const Words& words);
int run_info(const Words& words);
int run_tokens(const Words& words);
int run_logits(const Words& words);
int run_generate(const Words& words);
int run_read(const Words& words);
int run_map(const Words& words);
int run_why(const Words& words);
int run_patch(const Words& words);
int run_sweep(const Words& words);
int run_lesson(const Words& words);
int run_bench(const Words& words);
int run_bench_truth(const Words& words);  // the words after "bench truth"
int run_train(const Words& words);

inline constexpr int kDone = 0, kBadInput = 1, kUsage = 2, kInterrupted = 130;

}  // namespace regard::cli
