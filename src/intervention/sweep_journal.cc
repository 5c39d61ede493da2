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

constexpr std::string_view kMagic = "regard sweep journal 2\n";

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(ErrorCode::io, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)),
              "what a sweep has done is kept there: see that its folder is there, can be written and has room");
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

// FNV-1a (Fowler, Noll & Vo), of the header too, so that no other journal's result passes.
std::uint64_t check_of(std::string_view header, std::string_view record) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (const std::string_view bytes : {header, record})
    for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return sum;
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

SweepJournal::SweepJournal(std::filesystem::path path, const std::string& fingerprint, std::int64_t what_ifs,
                           std::int64_t edits)
    : path_(std::move(path)), header_(std::string(kMagic) + fingerprint + "\n"), edits_(edits) {
  file_.number = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_.number < 0) fail(path_, "open");
  if (::flock(file_.number, LOCK_EX | LOCK_NB) != 0)
    throw Error(ErrorCode::bad_input, fmt::format("another sweep is writing {}", path_.string()),
                "wait for it, or choose another -o FILE");
  std::string bytes;
  char block[1 << 16];
  for (ssize_t n; (n = ::read(file_.number, block, sizeof(block))) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "read");
    bytes.append(block, static_cast<std::size_t>(n));
  }
  std::size_t kept = header_.size();
  if (bytes.size() >= header_.size() && bytes.compare(0, header_.size(), header_) == 0) {
    const std::size_t record = sizeof(std::int64_t) + sizeof(double) + 3 * sizeof(std::int64_t) * edits_;
    for (; kept + record + sizeof(std::uint64_t) <= bytes.size(); kept += record + sizeof(std::uint64_t)) {
      const char* from = bytes.data() + kept;
      const std::uint64_t check = check_of(header_, {from, record});
      if (std::memcmp(from + record, &check, sizeof(check)) != 0) break;
      WhatIfResult result{.index = take<std::int64_t>(from), .value = 0, .receipts = {}};
      if (result.index < 0 || result.index >= what_ifs) break;
      result.value = take<double>(from);
      for (std::int64_t e = 0; e < edits_; ++e) {
        Receipt& receipt = result.receipts.emplace_back();
        for (std::int64_t* n : {&receipt.matched, &receipt.changed, &receipt.passed}) *n = take<std::int64_t>(from);
      }
      done_.push_back(std::move(result));
    }
  } else if (header_.compare(0, bytes.size(), bytes) == 0) {  // new, or stopped while the header was written
    if (::lseek(file_.number, 0, SEEK_SET) < 0) fail(path_, "write");
    write_all(file_.number, header_, path_);
  } else {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} holds what another command, text or model has done", path_.string()),
                "give the same command to go on with it, or remove that file");
  }
  if (::ftruncate(file_.number, static_cast<off_t>(kept)) != 0 || ::lseek(file_.number, 0, SEEK_END) < 0)
    fail(path_, "write");
}

SweepJournal::Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

void SweepJournal::add(const WhatIfResult& result) {
  const std::size_t begin = pending_.size();
  put(pending_, result.index);
  put(pending_, result.value);
  for (const Receipt& receipt : result.receipts)
    for (const std::int64_t n : {receipt.matched, receipt.changed, receipt.passed}) put(pending_, n);
  put(pending_, check_of(header_, std::string_view(pending_).substr(begin)));
}

void SweepJournal::flush() {
  write_all(file_.number, pending_, path_);
  pending_.clear();
}

void SweepJournal::remove() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace regard
