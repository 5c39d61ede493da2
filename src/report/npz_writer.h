#pragma once
// Arrays as numpy.load takes them: a zip of .npy files (version 1.0), stored without compression.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "report/output.h"
#include "report/results.h"

namespace regard {

class NpzWriter {
 public:
  // `out` must be a regular file (Output::to_file); Error{bad_input} otherwise.
  explicit NpzWriter(Output& out);
  ~NpzWriter();

  // The data must stay where it is until finish(). Shapes are row-major; an empty shape is a single number.
  void add(const std::string& name, std::span<const float> values, std::vector<std::int64_t> shape);
  void add(const std::string& name, std::span<const double> values, std::vector<std::int64_t> shape);
  void add(const std::string& name, std::span<const std::int64_t> values, std::vector<std::int64_t> shape);
  void add(const std::string& name, std::span<const std::int32_t> values, std::vector<std::int64_t> shape);
  // What follows is copied.
  // [tokens.size()] i4.
  void add_ids(const std::string& name, std::span<const TokenPiece> tokens);
  // [texts.size()] of fixed width; a byte that is not UTF-8 as \xE4.
  void add_texts(const std::string& name, std::span<const std::string> texts);

  void finish();  // Error{io}

 private:
  void add_array(const std::string& name, const std::string& type, const void* data, std::uint64_t bytes,
                 const std::vector<std::int64_t>& shape);
  struct Archive;
  std::unique_ptr<Archive> archive_;
};

}  // namespace regard
