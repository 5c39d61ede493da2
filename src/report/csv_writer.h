#pragma once
// Rows of comma-separated values (RFC 4180), UTF-8, lines ended by CR LF.

#include <cstdint>
#include <string_view>

#include "report/output.h"

namespace regard {

class CsvWriter {
 public:
  explicit CsvWriter(Output& out) : out_(out) {}
  void text(std::string_view bytes);  // in quotes; a byte that is not UTF-8 as \xE4
  void integer(std::int64_t value);
  void number(double value);  // 9 significant digits; empty when it is not finite
  void end_row();

 private:
  void separate();
  Output& out_;
  bool first_ = true;
};

}  // namespace regard
