#pragma once
// A trained model as a folder that any program for Hugging Face models reads: config.json, model.safetensors (bf16) and
// tokenizer.json. Of the Llama family with a vocabulary of words (WordPiece) or bytes, which is what is trained here.

#include <filesystem>

#include "training/parameters.h"

namespace regard {

// recipe: of one line, kept in the metadata of the weights. Numbers are rounded to bf16, to the nearest, ties to even.
// The same model gives the same bytes. Error{io}; Error{unsupported} for another family or tokenizer.
void write_model_folder(const std::filesystem::path& folder, const ModelConfig& config, const TokenizerSpec& tokenizer,
                        const Parameters& parameters, const std::string& recipe);

// The recipe of the folder's weights; empty for weights that name none, and for what holds no weights to read.
std::string recipe_of(const std::filesystem::path& folder);

}  // namespace regard
