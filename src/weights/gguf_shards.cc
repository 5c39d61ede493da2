#include "weights/gguf_shards.h"

#include "tensor/error.h"

namespace regard {

namespace {

constexpr std::int64_t kMostShards = 99999;  // five digits in the name

std::string suffix(std::int64_t shard, std::int64_t shards) {
  return fmt::format("-{:05}-of-{:05}.gguf", shard + 1, shards);
}

}  // namespace

GgufShards::GgufShards(const std::filesystem::path& path) {
  const auto open = [&](const std::filesystem::path& part) -> const GgufFile& {
    mappings.push_back(std::make_shared<MappedFile>(part));
    return ggufs.emplace_back(read_gguf(*mappings.back()));
  };
  open(path);
  const std::int64_t count = first().find_integer("split.count").value_or(1);
  if (count < 0 || count > kMostShards)
    throw Error(ErrorCode::bad_input, fmt::format("{}: 'split.count' is {}", path.string(), count));
  if (count > 1) {
    const std::string name = path.string(), end = suffix(0, count);
    if (first().find_integer("split.no").value_or(-1) != 0 || !name.ends_with(end))
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{}: is a part of a model in {} files, but not the first by name and content", name, count),
          fmt::format("give the file that ends in {}", end));
    const std::string stem = name.substr(0, name.size() - end.size());
    for (std::int64_t i = 1; i < count; ++i) {
      const GgufFile& gguf = open(stem + suffix(i, count));
      if (gguf.find_integer("split.no").value_or(-1) != i || gguf.find_integer("split.count").value_or(-1) != count)
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: is not part {} of {} of the model", gguf.file, i + 1, count));
    }
  }
  for (std::size_t shard = 0; shard < ggufs.size(); ++shard)
    for (const auto& [name, tensor] : ggufs[shard].tensors)
      if (!tensors.emplace(name, Place{shard, &tensor}).second)
        throw Error(ErrorCode::bad_input,
                    fmt::format("{}: the tensor {} is in another part too", ggufs[shard].file, in_quotes(name)));
  const std::optional<std::int64_t> total = first().find_integer("split.tensors.count");
  if (total && *total != static_cast<std::int64_t>(tensors.size()))
    throw Error(ErrorCode::bad_input, fmt::format("{}: 'split.tensors.count' is {}, but the files hold {} tensors",
                                                  path.string(), *total, tensors.size()));
}

}  // namespace regard
