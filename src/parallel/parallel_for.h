#pragma once
// The one way work is spread over threads. Which thread takes which index is free; results may not depend on it, so
// every index writes its own place and sums across indices are made afterwards, in index order.

#include <cstdint>
#include <functional>

namespace regard {

// Threads that parallel_for uses: at first the processors this process may run on. n >= 1, else Error{usage}.
void set_thread_count(int n);
int thread_count();

// Calls body(index, thread) for every index in [0, n), dynamically, on at most thread_count() threads; thread is in
// [0, thread_count()). An exception from a body stops the handing out of later indices; earlier ones still run, and the
// exception of the lowest index is thrown again here, whatever the threads did. Nested calls run on the calling thread,
// as thread 0 of their own: memory per thread must not be shared between an outer and an inner loop.
void parallel_for(std::int64_t n, const std::function<void(std::int64_t index, int thread)>& body);

}  // namespace regard
