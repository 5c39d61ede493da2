#include <filesystem>

#include "destination.h"
#include "interrupt.h"
#include "progress_line.h"
#include "report/json_documents.h"
#include "report/views.h"
#include "tensor/error.h"
#include "verbs.h"
#include "weights/catalogue.h"
#include "weights/convert.h"
#include "weights/disk_room.h"

namespace regard::cli {
namespace {

void check_output(const std::filesystem::path& out, bool force) {
  if (out.extension() != ".safetensors")
    throw Error(ErrorCode::usage, fmt::format("cannot write {}", out.string()), "the name must end in .safetensors");
  std::error_code error;
  if (std::filesystem::is_directory(out, error))
    throw Error(ErrorCode::usage, fmt::format("{} is a folder", out.string()), "name a file");
  if (!force && std::filesystem::exists(out, error))
    throw Error(ErrorCode::usage, fmt::format("{} is there already", out.string()),
                "name another file, or give --force");
}

}  // namespace

int run_convert(const Words& words) {
  Options options;
  std::optional<std::string> output;
  bool widen = false, force = false;
  Arguments arguments("convert", "Writes the weights of a model as one safetensors file, stored values as they are.",
                      "From a folder, a hub or a .safetensors file names and metadata stay. From a GGUF file its names "
                      "stay as they are there, shapes are row-major, and general.architecture goes into __metadata__; "
                      "nothing else of its metadata does, so keep the file. Quantised is what a GGUF file has in "
                      "blocks, FP8 and MXFP4; FP8 and MXFP4 lose their scales to the values.");
  options.declare_model(arguments);
  arguments.positional("OUT", output, "the file to write, .safetensors");
  arguments.flag("--f32", widen, "write what is quantised as f32; everything else stays as it is");
  arguments.flag("--force", force, "overwrite OUT");
  options.declare_output(arguments, {".json"});
  options.declare_machine(arguments);
  if (!options.parse(arguments, words)) return kDone;
  if (!output) throw Error(ErrorCode::usage, "no file to write", "regard convert MODEL OUT.safetensors");
  const std::filesystem::path out = *output;
  check_output(out, force);

  Conversion conversion = convert_from(locate(options.model_name()), widen);
  ConvertResult result{.path = out.string(),
                       .tensors = static_cast<std::int64_t>(conversion.tensors.size()),
                       .widened = conversion.widened};
  const SafetensorsWriter writer(std::move(conversion.tensors), conversion.metadata);
  result.bytes = writer.bytes();
  need_room(std::filesystem::absolute(out).parent_path(), result.bytes, out.string(),
            "make room, or name a file on another disk");
  ProgressLine progress(options.shows_progress());
  Output file = Output::to_file(out);
  remove_when_stopped(file.temporary());
  writer.write(
      [&](const std::byte* data, std::int64_t bytes) {
        file.write({reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes)});
      },
      "writing " + out.filename().string(), &progress);
  conversion.check_intact();
  file.finish();
  remove_when_stopped("");
  progress.clear();
  deliver(options, {.json = [&](Output& to) { write_json(to, result); },
                    .page = [&](const Terminal&) { return convert_page(result); }});
  return kDone;
}

}  // namespace regard::cli
