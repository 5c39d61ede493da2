#pragma once
// What a benchmark measured, one line per case.

#include <cstddef>
#include <limits>
#include <span>
#include <string>

#include "report/output.h"
#include "report/page.h"

namespace regard {

struct BenchLine {
  std::string name, shape, unit;
  double figure = 0;
  double peak = 0;      // what this processor could do in the same run, in the same unit; 0: nothing to compare with
  double fraction = 0;  // of the peak
  double error = std::numeric_limits<double>::quiet_NaN();  // largest, against float64; not a number: no numeric result
};

void write_json(Output& out, std::span<const BenchLine> lines);
void write_csv(Output& out, std::span<const BenchLine> lines);
// One case as a line, so that it can be shown when it is done.
Line bench_line(const BenchLine& line);
Line bench_heading();

}  // namespace regard
