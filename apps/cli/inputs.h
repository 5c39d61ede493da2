#pragma once
// From what was typed to a model and its token ids.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "options.h"
#include "report/results.h"

namespace regard::cli {

// A model to compute with. Refuses first a processor, or a choice of the environment, that has no kernels.
Model load_model(const std::filesystem::path& path, Packing packing = Packing::none);

// A whole file, or standard input ("-"), byte by byte. Error{not_found, io}; Error{bad_input} for more than `most`
// bytes.
std::string read_bytes(const std::string& name, std::size_t most);
// The text of -p or -f. Error{bad_input} when it is not UTF-8, Error{not_found, io} for the file.
std::string read_text(const Options& options);
// Error{usage} naming the option when its text is not UTF-8.
void check_utf8(const std::string& option, const std::string& text);
// The ids of one of a command's texts: with --chat, of what the model's template makes of it.
std::vector<std::int32_t> text_ids(const Options& options, const Tokenizer& tokenizer, const std::string& text);
// The ids of --ids, or those of the text. Error{bad_input} naming an id out of range.
std::vector<std::int32_t> prompt_ids(const Options& options, const Tokenizer& tokenizer);
// Error{bad_input} for no tokens at all, or more than the model's context takes.
void check_length(const std::vector<std::int32_t>& ids, const ModelConfig& config);

// What a model without a head, one with an encoder and a decoder, or one that reads both ways, cannot do.
// Error{unsupported}; `what`: "a text cannot be continued".
void require_head(const ModelConfig& config, const std::string& what);
void require_one_text(const Model& model, const std::string& what);
void require_left_to_right(const ModelConfig& config, const std::string& what);

// The model inside the program as `models` and `fetch` show it; `path`: where its folder is.
ListedModel listed_default_model(const std::filesystem::path& path);

// `path` as a file of its own: what locate() made of the name.
ModelSummary summary(const std::string& name, const ModelConfig& config, const std::filesystem::path& path);

}  // namespace regard::cli
