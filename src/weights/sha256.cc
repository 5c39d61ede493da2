#include "weights/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "tensor/error.h"

namespace regard {

namespace {

void must(int ok) {
  if (ok != 1) throw Error(ErrorCode::io, "the cryptographic library cannot compute SHA-256");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  if (EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) != 1) {
    EVP_MD_CTX_free(context_);
    must(0);
  }
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::update(const void* data, std::size_t bytes) { must(EVP_DigestUpdate(context_, data, bytes)); }

std::string Sha256::hex() {
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  must(EVP_DigestFinal_ex(context_, sum, &length));
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", sum[i]);
  return text;
}

std::string sha256_of_file(const std::filesystem::path& path, const std::function<void(std::int64_t)>& at) {
  const auto reason = [] { return std::generic_category().message(errno); };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw Error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                fmt::format("{}: cannot be opened: {}", path.string(), reason()));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&file, [](const int* f) { close(*f); });
  Sha256 sum;
  std::vector<char> block(1 << 20);
  std::int64_t done = 0;
  for (;;) {
    const ssize_t got = read(file, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", path.string(), reason()));
    if (got == 0) return sum.hex();
    sum.update(block.data(), static_cast<std::size_t>(got));
    done += got;
    if (at) at(done);
  }
}

}  // namespace regard
