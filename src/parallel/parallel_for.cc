#include "parallel/parallel_for.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "tensor/error.h"

namespace regard {
namespace {
std::atomic<int> g_threads{0};
}

void set_thread_count(int n) {
  if (n < 1) throw Error(ErrorCode::usage, fmt::format("{} threads asked for", n), "use 1 or more");
  g_threads = n;
}

int thread_count() {
  int n = g_threads;
  if (n == 0) {
    n = omp_get_num_procs();
    g_threads = n;
  }
  return n;
}

void parallel_for(std::int64_t n, const std::function<void(std::int64_t, int)>& body) {
  const int threads = static_cast<int>(std::min<std::int64_t>(thread_count(), n));
  if (threads <= 1 || omp_in_parallel()) {
    for (std::int64_t i = 0; i < n; ++i) body(i, 0);
    return;
  }
  // Indices below one that threw still run, so the error that gets out is the one a single thread would have met first.
  std::atomic<std::int64_t> error_index{n};
  std::exception_ptr error;
  std::mutex mutex;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > error_index.load(std::memory_order_relaxed)) continue;
    try {
      body(i, omp_get_thread_num());
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < error_index) {
        error_index = i;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace regard
