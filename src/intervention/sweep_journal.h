#pragma once
// What a sweep has done so far, beside the file that it will write: results are appended as they come, so that a sweep
// that was stopped at any moment, by whatever, goes on where it was. The journal knows which sweep it belongs to, and
// each result is followed by a check of its bytes: what a crash of the machine left half-written is computed again.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "intervention/sweep.h"

namespace regard {

class SweepJournal {
 public:
  // Opens `path`, or makes it. fingerprint: of everything that decides the results. what_ifs: how many there are.
  // edits: receipts of a result. The first result that is not whole is dropped, and all after it. Error{bad_input} when
  // the journal belongs to another sweep or is not one (it is left as it was), or when another process has it open;
  // Error{io}.
  SweepJournal(std::filesystem::path path, const std::string& fingerprint, std::int64_t what_ifs, std::int64_t edits);
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  // Results found when it was opened.
  const std::vector<WhatIfResult>& done() const { return done_; }
  void add(const WhatIfResult& result);
  void flush();   // Error{io}
  void remove();  // when the whole result is safe

 private:
  struct Descriptor {
    ~Descriptor();
    int number = -1;
  };

  std::filesystem::path path_;
  std::string header_;
  Descriptor file_;
  std::int64_t edits_;
  std::vector<WhatIfResult> done_;
  std::string pending_;
};

}  // namespace regard
