#pragma once
// JSON that may have been written by anybody: read whole, or refused with the file and the place in it.
//
// More is refused than the grammar asks for, because two programs that read such a file differently is how one of them
// is fooled: an object with the same key twice, values nested more than 64 deep, files of more than 256 MiB, text that
// is not UTF-8, anything behind the value.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/error.h"

namespace regard {

// A value of a document, with the place where it stands. Copies share the document. Every access that does not fit is
// Error{bad_input} "FILE: PLACE ..." with a place like model.vocab or normalizers[2].type.
class JsonPlace {
 public:
  // `value` is part of what `owner` keeps alive.
  JsonPlace(std::shared_ptr<const void> owner, const nlohmann::json& value, std::shared_ptr<const std::string> file,
            std::string place);

  bool is_null() const;
  bool is_boolean() const;
  bool is_integer() const;
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  bool boolean() const;
  std::int64_t integer() const;     // a whole number written without a fraction, in range
  double number() const;            // any number
  std::string_view string() const;  // lives as long as the document
  std::size_t size() const;         // of an array or an object

  // Of an object: the member, or nothing where it is absent or null; `at` calls that an error.
  std::optional<JsonPlace> find(std::string_view member) const;
  JsonPlace at(std::string_view member) const;
  std::vector<std::string> keys() const;  // sorted
  // Error{unsupported} naming the first member that is none of these: what is not understood is not ignored.
  void expect_only(std::initializer_list<std::string_view> members) const;

  // Of an array.
  JsonPlace at(std::size_t index) const;
  std::vector<JsonPlace> elements() const;

  // Members with a default for absent and null.
  bool boolean_or(std::string_view member, bool otherwise) const;
  std::int64_t integer_or(std::string_view member, std::int64_t otherwise) const;
  double number_or(std::string_view member, double otherwise) const;
  std::string string_or(std::string_view member, std::string_view otherwise) const;

  // For loops over very many values; needs <nlohmann/json.hpp>.
  const nlohmann::json& raw() const { return *value_; }
  const std::string& file() const { return *file_; }
  const std::string& place() const { return place_; }  // empty for the whole document
  // An Error about this value: "FILE: PLACE `what`".
  Error error(std::string_view what, ErrorCode code = ErrorCode::bad_input, std::string hint = {}) const;

 private:
  std::shared_ptr<const void> owner_;
  const nlohmann::json* value_;
  std::shared_ptr<const std::string> file_;
  std::string place_;
};

// Errors: not_found, io, bad_input (naming file, line and column).
JsonPlace read_json(const std::filesystem::path& path);
// The same for text in memory; `file` is what errors call it.
JsonPlace parse_json(std::string_view text, std::string file);

// A whole file of settings or of a vocabulary, of at most `most` bytes. Errors: not_found (also for what is no regular
// file), io, bad_input.
std::string read_whole_file(const std::filesystem::path& path, std::uint64_t most = std::uint64_t{256} << 20);

}  // namespace regard
