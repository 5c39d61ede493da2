#pragma once
// SHA-256, by OpenSSL.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace regard {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* data, std::size_t bytes);
  std::string hex();  // lower case, 64 letters; ends the sum

 private:
  evp_md_ctx_st* context_;
};

// Of a whole file. `at`, if given, is told the bytes done now and then and may throw. Errors: not_found, io.
std::string sha256_of_file(const std::filesystem::path& path, const std::function<void(std::int64_t)>& at = {});

}  // namespace regard
