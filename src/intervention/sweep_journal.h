#pragma once
// What a sweep has done so far, beside the file that it will write: results are appended as they come, so that a sweep
// that was stopped at any moment, by whatever, goes on where it was. The journal knows which sweep it belongs to.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "intervention/sweep.h"

namespace regard {

class SweepJournal {
 public:
  // Opens `path`, or makes it. fingerprint: of everything that decides the results. edits: receipts of a result. A
  // result that was being written when the sweep stopped is dropped. Error{bad_input} when the journal belongs to
  // another sweep or is not one, Error{io}.
  SweepJournal(std::filesystem::path path, const std::string& fingerprint, std::int64_t edits);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  // Results found when it was opened.
  const std::vector<WhatIfResult>& done() const { return done_; }
  void add(const WhatIfResult& result);
  void flush();   // Error{io}
  void remove();  // when the whole result is safe

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t edits_;
  std::vector<WhatIfResult> done_;
  std::string pending_;
};

}  // namespace regard
