#include "weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "tensor/error.h"

namespace regard {

// One entry of a list that the signal handler walks without a lock: entries are only ever added, and used again when
// free.
struct MappedFile::Guard {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // begin == 0: free
  std::atomic<bool> damaged{false};
  Guard* next = nullptr;

  static Guard* add(std::uintptr_t begin, std::uintptr_t end);
  static void handle(int signal, siginfo_t* what, void* context);
  static inline std::atomic<Guard*> first{nullptr};
  static inline struct sigaction previous {};
  static inline std::uintptr_t page = 4096;
};

void MappedFile::Guard::handle(int signal, siginfo_t* what, void* context) {
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(what->si_addr);
  for (Guard* g = first.load(); g != nullptr; g = g->next) {
    const std::uintptr_t begin = g->begin.load(), end = g->end.load();
    if (begin == 0 || at < begin || at >= end) continue;
    g->damaged.store(true);
    // From here to the end at once: what was cut off is cut off for all of it. (mmap is one system call: safe here.)
    const std::uintptr_t from = at / page * page;
    const int error = errno;
    const void* got =
        mmap(reinterpret_cast<void*>(from), end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = error;
    if (got != MAP_FAILED) return;
    break;
  }
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, what, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  sigaction(SIGBUS, &previous, nullptr);  // nobody's: the same fault comes again and does what it would have done
}

MappedFile::Guard* MappedFile::Guard::add(std::uintptr_t begin, std::uintptr_t end) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static const bool installed = [] {
    page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &previous) == 0;
  }();
  static_cast<void>(installed);
  Guard* g = first.load();
  while (g != nullptr && g->begin.load() != 0) g = g->next;
  if (g == nullptr) {
    g = new Guard;
    g->next = first.load();
    first.store(g);
  }
  g->damaged.store(false);
  g->end.store(end);
  g->begin.store(begin);
  return g;
}

namespace {

std::string reason() { return std::generic_category().message(errno); }

std::int64_t modified_ns(const struct stat& s) {
  return static_cast<std::int64_t>(s.st_mtim.tv_sec) * 1'000'000'000 + s.st_mtim.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const std::string name = path.string();
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // not to wait for the other end of a pipe
  if (file_ < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      throw Error(ErrorCode::not_found, fmt::format("{}: there is no such file", name), "check the path");
    throw Error(ErrorCode::io, fmt::format("{}: cannot be opened: {}", name, reason()));
  }
  try {
    struct stat s;
    if (fstat(file_, &s) != 0) throw Error(ErrorCode::io, fmt::format("{}: cannot be looked at: {}", name, reason()));
    if (!S_ISREG(s.st_mode))
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: is {}, not a file", name, S_ISDIR(s.st_mode) ? "a folder" : "a pipe or device"));
    if (s.st_size == 0) throw Error(ErrorCode::bad_input, fmt::format("{}: the file is empty", name));
    size_ = s.st_size;
    modified_ns_ = modified_ns(s);
    void* mapped = mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ, MAP_PRIVATE, file_, 0);
    if (mapped == MAP_FAILED) throw Error(ErrorCode::io, fmt::format("{}: cannot be mapped: {}", name, reason()));
    data_ = static_cast<std::byte*>(mapped);
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data_);
    guard_ = Guard::add(begin, begin + static_cast<std::uintptr_t>(size_));
  } catch (...) {
    release();
    throw;
  }
}

MappedFile::~MappedFile() { release(); }

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  path_ = std::move(other.path_);
  file_ = std::exchange(other.file_, -1);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  modified_ns_ = other.modified_ns_;
  guard_ = std::exchange(other.guard_, nullptr);
  return *this;
}

void MappedFile::release() noexcept {
  if (guard_ != nullptr) guard_->begin.store(0);
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(size_));
  if (file_ >= 0) close(file_);
  guard_ = nullptr;
  data_ = nullptr;
  file_ = -1;
}

void MappedFile::check_intact() const {
  struct stat s;
  if (fstat(file_, &s) != 0)
    throw Error(ErrorCode::io, fmt::format("{}: cannot be looked at: {}", path_.string(), reason()));
  if (s.st_size == size_ && modified_ns(s) == modified_ns_ && !guard_->damaged.load()) return;
  throw Error(ErrorCode::io,
              fmt::format("{}: the file was {} while it was in use; what was computed from it is not to be trusted",
                          path_.string(), s.st_size < size_ ? "cut short" : "changed"),
              "load it again once it is whole");
}

}  // namespace regard
