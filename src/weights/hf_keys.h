#pragma once
// The keys of a config.json, each asked for by name: what nobody asked for and what is not known to change nothing is
// refused.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weights/checked_json.h"

namespace regard {

class HfKeys {
 public:
  // `tensors`: how many the files beside it hold.
  HfKeys(JsonPlace config, std::int64_t tensors) : config_(std::move(config)), tensors_(tensors) {}

  // A number of things, 1 to 2^30. Of several names for it, the first that is there counts.
  std::int64_t extent(std::initializer_list<std::string_view> names);
  std::optional<std::int64_t> find_extent(std::initializer_list<std::string_view> names);
  // The same for layers: no more than there are tensors, so that what is kept per layer is no larger than the files.
  std::int64_t layers(std::initializer_list<std::string_view> names);
  // null counts as absent, here and below.
  std::optional<std::int64_t> find_integer(std::string_view name);
  std::optional<double> find_number(std::string_view name);
  double positive_or(std::string_view name, double otherwise);
  // What a norm adds to a variance: 0 or more, finite as f32 too.
  float epsilon_or(std::string_view name, double otherwise);
  // What a softcap divides by; 0 where the file has none.
  float softcap(std::string_view name);
  bool flag_or(std::string_view name, bool otherwise);
  std::string string_or(std::string_view name, std::string_view otherwise);
  std::optional<JsonPlace> find(std::string_view name);
  bool says_null(std::string_view name) const;  // it is there, as null

  // Error{unsupported}: the key has this value, which is not supported.
  [[noreturn]] void refuse(std::string_view name, std::string_view what) const;
  [[noreturn]] void bad(std::string_view name, std::string_view what) const;
  // The key, if it is there, must say this: anything else is refused.
  void expect(std::string_view name, bool value);
  void expect(std::string_view name, double value);
  // Error{unsupported} naming the first key that was not asked for and may change the result.
  void refuse_unknown() const;
  const JsonPlace& whole() const { return config_; }

 private:
  JsonPlace config_;
  std::int64_t tensors_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace regard
