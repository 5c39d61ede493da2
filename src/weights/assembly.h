#pragma once
// From the tensors of a file to the matrices that a configuration calls for.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "weights/checkpoint.h"
#include "weights/expected_tensors.h"
#include "weights/stored_tensor.h"
#include "weights/tensor_part.h"

namespace regard {

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
  // A router has a row per expert: without one that fits, there is no telling how many experts there may be. To be
  // asked before all that the configuration calls for is listed. Error{bad_input} as take().
  void check_router(const ExpectedTensor& router, const TensorPart& part) { find(router, part); }
  void ignore(std::string_view tensor) { use(std::string(tensor)); }
  // The same, of a tensor that holds another one again. Error{bad_input} if it has other bytes.
  void ignore_twin(const std::string& tensor, const std::string& of);
  // Error{unsupported} naming the first tensor that nobody took.
  void refuse_leftovers() const;

 private:
  struct StoredRows;  // a matrix or vector as the file has it
  Matrix find(const ExpectedTensor& expected, const TensorPart& part);
  StoredRows stored_rows(const StoredTensor& stored, const ExpectedTensor& expected, const TensorPart& part);
  StoredRows turned(const StoredRows& rows);  // once, however many parts are taken of it
  std::byte* room(std::int64_t bytes);
  Checkpoint& counts() { return decoder_ ? decoder_->checkpoint_ : checkpoint_; }
  bool use(std::string tensor) { return (decoder_ ? decoder_->used_ : used_).insert(std::move(tensor)).second; }
  std::string where(const StoredTensor& tensor, std::string_view name) const;

  Checkpoint& checkpoint_;
  const StoredTensors& tensors_;
  Assembly* decoder_ = nullptr;
  std::map<const std::byte*, const std::byte*> turned_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace regard
