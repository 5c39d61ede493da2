#include "intervention/sweep_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "tensor/error.h"

namespace regard {
namespace {

constexpr std::string_view kMagic = "regard sweep journal 1\n";

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(ErrorCode::io, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

template <typename T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
T take(const char*& from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  from += sizeof(T);
  return value;
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

SweepJournal::SweepJournal(std::filesystem::path path, const std::string& fingerprint, std::int64_t edits)
    : path_(std::move(path)), edits_(edits) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, "open");
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(std::exchange(descriptor_, -1));
    throw Error(ErrorCode::bad_input, fmt::format("another sweep is writing {}", path_.string()),
                "wait for it, or choose another -o FILE");
  }
  const std::string header = std::string(kMagic) + fingerprint + "\n";
  std::string bytes;
  char block[1 << 16];
  for (ssize_t n; (n = ::read(descriptor_, block, sizeof(block))) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "read");
    bytes.append(block, static_cast<std::size_t>(n));
  }
  std::size_t kept = header.size();
  if (bytes.size() >= header.size() && bytes.compare(0, header.size(), header) == 0) {
    const std::size_t record = sizeof(std::int64_t) + sizeof(double) + 3 * sizeof(std::int64_t) * edits_;
    for (; kept + record <= bytes.size(); kept += record) {
      const char* from = bytes.data() + kept;
      WhatIfResult& result = done_.emplace_back();
      result.index = take<std::int64_t>(from);
      result.value = take<double>(from);
      for (std::int64_t e = 0; e < edits_; ++e) {
        Receipt& receipt = result.receipts.emplace_back();
        for (std::int64_t* n : {&receipt.matched, &receipt.changed, &receipt.passed}) *n = take<std::int64_t>(from);
      }
    }
  } else if (header.compare(0, bytes.size(), bytes) == 0) {  // new, or stopped while the header was written
    if (::lseek(descriptor_, 0, SEEK_SET) < 0) fail(path_, "write");
    write_all(descriptor_, header, path_);
  } else {
    ::close(std::exchange(descriptor_, -1));
    throw Error(ErrorCode::bad_input,
                fmt::format("{} holds what another command, text or model has done", path_.string()),
                "give the same command to go on with it, or remove that file");
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(kept)) != 0 || ::lseek(descriptor_, 0, SEEK_END) < 0)
    fail(path_, "write");
}

SweepJournal::~SweepJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SweepJournal::add(const WhatIfResult& result) {
  put(pending_, result.index);
  put(pending_, result.value);
  for (const Receipt& receipt : result.receipts)
    for (const std::int64_t n : {receipt.matched, receipt.changed, receipt.passed}) put(pending_, n);
}

void SweepJournal::flush() {
  write_all(descriptor_, pending_, path_);
  pending_.clear();
}

void SweepJournal::remove() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace regard
