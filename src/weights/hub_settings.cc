#include "weights/hub_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "tensor/error.h"
#include "weights/checked_json.h"
#include "weights/home_folder.h"

namespace regard {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path folder_in(const char* name) {
  const std::string value = variable(name);
  if (value == "~" || value.starts_with("~/"))
    return home_folder("HF_HOME") / value.substr(std::min<std::size_t>(2, value.size()));
  return value.empty() ? std::filesystem::path() : std::filesystem::absolute(value);
}

std::filesystem::path hub_home() {
  if (const auto home = folder_in("HF_HOME"); !home.empty()) return home;
  if (const auto xdg = folder_in("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "huggingface";
  return home_folder("HF_HOME") / ".cache" / "huggingface";
}

bool is_true(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string trimmed(std::string text) {
  const char* space = " \t\r\n";
  text.erase(text.find_last_not_of(space) + 1);
  return text.substr(std::min(text.find_first_not_of(space), text.size()));
}

void find_token(HubSettings& settings) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    settings.token = trimmed(variable(name));
    settings.token_from = name;
    if (!settings.token.empty()) return;
  }
  std::filesystem::path file = folder_in("HF_TOKEN_PATH");
  if (file.empty()) file = hub_home() / "token";
  settings.token_from = file.string();
  std::error_code error;
  if (std::filesystem::exists(file, error)) settings.token = trimmed(read_whole_file(file, 1 << 16));
}

}  // namespace

std::filesystem::path hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const auto cache = folder_in(name); !cache.empty()) return cache;
  return hub_home() / "hub";
}

HubSettings hub_settings() {
  HubSettings settings;
  settings.cache = hub_cache_folder();
  settings.offline = is_true(variable("HF_HUB_OFFLINE")) || is_true(variable("TRANSFORMERS_OFFLINE"));
  if (std::string endpoint = trimmed(variable("HF_ENDPOINT")); !endpoint.empty()) {
    if (!endpoint.starts_with("https://") && !endpoint.starts_with("http://"))
      throw Error(ErrorCode::usage, fmt::format("HF_ENDPOINT is {}, which is no http address", endpoint),
                  "set it to something like https://huggingface.co, or unset it");
    while (endpoint.ends_with('/')) endpoint.pop_back();
    settings.endpoint = endpoint;
  }
  if (const std::string seconds = variable("HF_HUB_DOWNLOAD_TIMEOUT"); !seconds.empty()) {
    const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), settings.stall_seconds);
    if (error != std::errc() || end != seconds.data() + seconds.size() || settings.stall_seconds < 1)
      throw Error(ErrorCode::usage, fmt::format("HF_HUB_DOWNLOAD_TIMEOUT is {}", seconds),
                  "set it to a whole number of seconds, or unset it");
  }
  find_token(settings);
  const auto printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!std::all_of(settings.token.begin(), settings.token.end(), printable))
    throw Error(ErrorCode::usage,
                fmt::format("the token of {} has characters in it that no token has", settings.token_from),
                "put the token alone there, in one line");
  return settings;
}

}  // namespace regard
