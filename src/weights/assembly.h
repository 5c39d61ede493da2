#pragma once
// From the tensors of a file to the matrices that a configuration calls for.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "weights/checkpoint.h"
#include "weights/expected_tensors.h"
#include "weights/stored_tensor.h"

namespace regard {

// Where a matrix lies in what is stored: rows are outputs.
struct TensorPart {
  std::string tensor;
  std::int64_t expert = -1;  // of a stack [experts, ...], which one
  bool turned = false;       // stored [in, out]
  // Which of its rows, in blocks that lie `step` rows apart, from row `first` on; block 0: all of them.
  std::int64_t first = 0, block = 0, step = 0;
};

// Names rows without a copy where they lie evenly; else keeps their stored bytes in another order (turned matrices,
// heads that alternate between q, k and v). Values are never rewritten.
class Assembly {
 public:
  // `checkpoint`'s files must be there; tensors are counted in its `stored`. Both must outlive it.
  Assembly(Checkpoint& checkpoint, const StoredTensors& tensors) : checkpoint_(checkpoint), tensors_(tensors) {}
  // For the encoder of `decoder`'s model: what either takes is taken, and counted there.
  Assembly(Checkpoint& checkpoint, Assembly& decoder)
      : checkpoint_(checkpoint), tensors_(decoder.tensors_), decoder_(&decoder) {}

  bool has(std::string_view tensor) const { return tensors_.contains(tensor); }
  // Puts the matrix into the checkpoint. Errors: bad_input (it is missing and not optional, or its shape is another),
  // unsupported (stored in a way that regard does not compute with), naming file and tensor.
  void take(const ExpectedTensor& expected, const TensorPart& part);
  // The values of a vector, which is not put into the checkpoint.
  std::vector<float> values(const ExpectedTensor& expected, const TensorPart& part);
  void ignore(std::string_view tensor) { use(std::string(tensor)); }
  // Error{unsupported} naming the first tensor that nobody took.
  void refuse_leftovers() const;

 private:
  Matrix find(const ExpectedTensor& expected, const TensorPart& part);
  bool use(std::string tensor) { return (decoder_ ? decoder_->used_ : used_).insert(std::move(tensor)).second; }
  std::string where(const StoredTensor& tensor, std::string_view name) const;

  Checkpoint& checkpoint_;
  const StoredTensors& tensors_;
  Assembly* decoder_ = nullptr;
  std::set<std::string, std::less<>> used_;
};

}  // namespace regard
