#include "weights/git_blob.h"

#include <openssl/evp.h>

#include <limits>

#include "tensor/error.h"
#include "weights/checked_json.h"

namespace regard {

std::string git_blob_sha1_of_file(const std::filesystem::path& path) {
  const std::string data = read_whole_file(path, std::numeric_limits<std::int64_t>::max());
  const std::string bytes = fmt::format("blob {}", data.size()) + '\0' + data;
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), sum, &length, EVP_sha1(), nullptr) != 1)
    throw Error(ErrorCode::io, "the cryptographic library cannot compute SHA-1");
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", sum[i]);
  return text;
}

}  // namespace regard
