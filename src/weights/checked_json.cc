#include "weights/checked_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/display.h"
#include "weights/gguf.h"

namespace regard {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 64;

// "line 3, column 17" of the byte at `at`, counted from 1.
std::string line_and_column(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  return fmt::format("line {}, column {}", line, start == std::string_view::npos ? before.size() + 1 : at - start);
}

// Builds the document, and refuses what the parser would let pass.
class Builder final : public Json::json_sax_t {
 public:
  Builder(Json& root, std::string_view text, const std::string& file) : root_(root), text_(text), file_(file) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::value_t::object); }
  bool start_array(std::size_t) override { return open(Json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    auto [at, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(key));
    if (!is_new)
      throw Error(ErrorCode::bad_input, fmt::format("{}: an object has the key {} twice", file_, in_quotes(at->first)),
                  "which of the two counts would differ from program to program: take one out");
    member_ = &at->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // The parser's own words begin with its name, a number and the place.
    std::string_view why = error.what();
    if (const std::size_t at = why.find(": "); at != std::string_view::npos) why.remove_prefix(at + 2);
    std::string clean(why);
    std::replace_if(
        clean.begin(), clean.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    throw Error(ErrorCode::bad_input, fmt::format("{}: not valid JSON at {}: {}", file_,
                                                  line_and_column(text_, position > 0 ? position - 1 : 0), clean));
  }

 private:
  template <class Value>
  bool put(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }

  Json& place(Json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    if (Json& parent = *open_.back(); parent.is_array()) {
      auto& elements = parent.get_ref<Json::array_t&>();
      return elements.emplace_back(std::move(value));
    }
    return *member_ = std::move(value);
  }

  bool open(Json::value_t kind) {
    if (open_.size() == kDeepest)
      throw Error(ErrorCode::bad_input, fmt::format("{}: values are nested more than {} deep", file_, kDeepest));
    open_.push_back(&place(Json(kind)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  std::string_view text_;
  const std::string& file_;
  std::vector<Json*> open_;  // a container does not move while one of its own members is open
  Json* member_ = nullptr;
};

}  // namespace

JsonPlace::JsonPlace(std::shared_ptr<const void> owner, const nlohmann::json& value,
                     std::shared_ptr<const std::string> file, std::string place)
    : owner_(std::move(owner)), value_(&value), file_(std::move(file)), place_(std::move(place)) {}

bool JsonPlace::is_null() const { return value_->is_null(); }
bool JsonPlace::is_boolean() const { return value_->is_boolean(); }
bool JsonPlace::is_integer() const { return value_->is_number_integer(); }
bool JsonPlace::is_number() const { return value_->is_number(); }
bool JsonPlace::is_string() const { return value_->is_string(); }
bool JsonPlace::is_array() const { return value_->is_array(); }
bool JsonPlace::is_object() const { return value_->is_object(); }

Error JsonPlace::error(std::string_view what, ErrorCode code, std::string hint) const {
  return Error(code, fmt::format("{}: {} {}", file(), place_.empty() ? "the document" : display(place_), display(what)),
               std::move(hint));
}

bool JsonPlace::boolean() const {
  if (!is_boolean()) throw error("should be true or false");
  return value_->get<bool>();
}

std::int64_t JsonPlace::integer() const {
  if (!is_integer()) throw error("should be a whole number");
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw error("is too large a number");
  return value_->get<std::int64_t>();
}

double JsonPlace::number() const {
  if (!is_number()) throw error("should be a number");
  return value_->get<double>();
}

std::string_view JsonPlace::string() const {
  if (!is_string()) throw error("should be a string");
  return value_->get_ref<const std::string&>();
}

std::size_t JsonPlace::size() const {
  if (!is_array() && !is_object()) throw error("should be an array or an object");
  return value_->size();
}

std::optional<JsonPlace> JsonPlace::find(std::string_view member) const {
  if (!is_object()) throw error("should be an object");
  const auto& members = value_->get_ref<const Json::object_t&>();
  const auto found = members.find(member);
  if (found == members.end() || found->second.is_null()) return std::nullopt;
  return JsonPlace(owner_, found->second, file_, fmt::format("{}{}{}", place_, place_.empty() ? "" : ".", member));
}

JsonPlace JsonPlace::at(std::string_view member) const {
  std::optional<JsonPlace> found = find(member);
  if (!found) throw error(fmt::format("has no member {}", in_quotes(member)));
  return *std::move(found);
}

std::vector<std::string> JsonPlace::keys() const {
  if (!is_object()) throw error("should be an object");
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_->get_ref<const Json::object_t&>()) keys.push_back(key);
  return keys;
}

void JsonPlace::expect_only(std::initializer_list<std::string_view> members) const {
  for (const std::string& key : keys())
    if (std::find(members.begin(), members.end(), key) == members.end())
      throw error(fmt::format("has the member {}, which is not understood", in_quotes(key)), ErrorCode::unsupported,
                  "as it may change the result, it is not ignored");
}

JsonPlace JsonPlace::at(std::size_t index) const {
  if (!is_array()) throw error("should be an array");
  const auto& elements = value_->get_ref<const Json::array_t&>();
  if (index >= elements.size()) throw error(fmt::format("has {} elements, not {}", elements.size(), index + 1));
  return JsonPlace(owner_, elements[index], file_, fmt::format("{}[{}]", place_, index));
}

std::vector<JsonPlace> JsonPlace::elements() const {
  if (!is_array()) throw error("should be an array");
  std::vector<JsonPlace> elements;
  for (std::size_t i = 0; i < value_->size(); ++i) elements.push_back(at(i));
  return elements;
}

bool JsonPlace::boolean_or(std::string_view member, bool otherwise) const {
  const auto found = find(member);
  return found ? found->boolean() : otherwise;
}

std::int64_t JsonPlace::integer_or(std::string_view member, std::int64_t otherwise) const {
  const auto found = find(member);
  return found ? found->integer() : otherwise;
}

double JsonPlace::number_or(std::string_view member, double otherwise) const {
  const auto found = find(member);
  return found ? found->number() : otherwise;
}

std::string JsonPlace::string_or(std::string_view member, std::string_view otherwise) const {
  const auto found = find(member);
  return std::string(found ? found->string() : otherwise);
}

std::string read_whole_file(const std::filesystem::path& path, std::uint64_t most) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem))
    throw Error(ErrorCode::not_found, fmt::format("{}: there is no such file", path.string()));
  const std::uint64_t size = std::filesystem::file_size(path, problem);
  if (problem) throw Error(ErrorCode::io, fmt::format("{}: {}", path.string(), problem.message()));
  if (size > most)
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: a file of {} bytes is too large; at most {} are read", path.string(), size, most));
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    throw Error(ErrorCode::io, fmt::format("{}: cannot be read to its end", path.string()));
  return text;
}

JsonPlace parse_json(std::string_view text, std::string file) {
  auto root = std::make_shared<Json>();
  Builder builder(*root, text, file);
  Json::sax_parse(text.begin(), text.end(), &builder);
  const Json& value = *root;
  return JsonPlace(std::move(root), value, std::make_shared<std::string>(std::move(file)), "");
}

JsonPlace read_json(const std::filesystem::path& path) { return parse_json(read_whole_file(path), path.string()); }

}  // namespace regard
