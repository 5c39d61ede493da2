#pragma once
// What a text is as one vector: the mean of its rows' last hidden states, special tokens included (mean pooling with an
// attention mask of ones; Reimers & Gurevych 2019, Sentence-BERT, section 3). The last hidden state is what the public
// implementations call by that name: after the final norm, where the model has one. Needs no head.

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace regard {

// resid: [T, C] after the last block. [C], summed in double by position.
std::vector<double> embedding(const Model& model, View<const float, 2> resid);
// Of a text that is run for it. Errors: as feed(); Error{bad_input} for no tokens.
std::vector<double> embedding_of(const Model& model, std::span<const std::int32_t> ids);

// a . b / (|a| |b|), in double by index; NaN where one of them is 0.
double cosine(std::span<const double> a, std::span<const double> b);

}  // namespace regard
