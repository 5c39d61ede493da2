#pragma once
// JSON as it comes: nothing is kept but the nesting, so a document of any size takes no memory. Numbers are finite or
// null; floats carry 9 significant digits, which keeps every bit of an f32.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "report/output.h"
#include "tensor/view.h"

namespace regard {

class JsonWriter {
 public:
  explicit JsonWriter(Output& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  // Members of the outermost object each start a line.
  void key(std::string_view name);

  // Always valid UTF-8: a byte that is not part of a character is written as the four characters \xE4.
  void string(std::string_view bytes);
  void integer(std::int64_t value);
  void number(double value);
  void boolean(bool value);
  void null();

  // One array of numbers.
  void numbers(std::span<const float> values);
  // Nested like the view's shape.
  template <int Rank>
  void numbers(View<const float, Rank> values) {
    if constexpr (Rank == 1) {
      if (values.stride[0] == 1) return numbers(std::span(values.data, static_cast<std::size_t>(values.shape[0])));
      begin_array();
      for (std::int64_t i = 0; i < values.shape[0]; ++i) number(values(i));
      end_array();
    } else {
      begin_array();
      for (std::int64_t i = 0; i < values.shape[0]; ++i) numbers(values[i]);
      end_array();
    }
  }
  void integers(std::span<const std::int64_t> values);

  // key, then value.
  void member(std::string_view name, std::string_view value) { key(name), string(value); }
  void member(std::string_view name, const char* value) { key(name), string(value); }
  void member(std::string_view name, std::int64_t value) { key(name), integer(value); }
  void member(std::string_view name, std::int32_t value) { key(name), integer(value); }
  void member(std::string_view name, double value) { key(name), number(value); }
  void member(std::string_view name, const std::optional<double>& value) { key(name), value ? number(*value) : null(); }
  void member(std::string_view name, bool value) { key(name), boolean(value); }

  // Ends the document with a line feed. The output's finish() stays with the caller.
  void end_document();

 private:
  void open(char bracket);
  void close(char bracket);
  void before_value();

  Output& out_;
  std::vector<char> first_;  // per open bracket: nothing in it yet
  bool after_key_ = false;
};

}  // namespace regard
