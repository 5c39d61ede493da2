#include "weights/hub_client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "tensor/error.h"
#include "weights/hub_errors.h"

namespace regard {

namespace {

constexpr int kTries = 5;                        // in a row, without a byte in between
constexpr int kRedirects = 10;                   // of one exchange
constexpr int kLongestWait = 300;                // seconds; a server that asks for more is told of instead
constexpr std::size_t kLongestText = 64u << 20;  // bytes

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

bool is_redirect(const HttpAnswer& answer) {
  return !answer.redirect.empty() && (answer.status == 301 || answer.status == 302 || answer.status == 303 ||
                                      answer.status == 307 || answer.status == 308);
}

bool may_pass(const HttpAnswer& answer) {
  return !answer.fault.empty() || answer.status == 408 || answer.status == 429 || answer.status == 500 ||
         answer.status == 502 || answer.status == 503 || answer.status == 504;
}

// "bytes 5-9/10": does what comes continue a file of `bytes` at `from`?
bool continues(const HttpAnswer& answer, std::int64_t from, std::int64_t bytes) {
  const std::string range = answer.header("content-range");
  const std::size_t dash = range.find('-'), slash = range.find('/');
  if (!range.starts_with("bytes ") || dash == range.npos || slash == range.npos || dash < 6) return false;
  const std::string total = range.substr(slash + 1);
  return number(std::string_view(range).substr(6, dash - 6)) == from && (total == "*" || number(total) == bytes);
}

}  // namespace

HubClient::HubClient(const HubSettings& settings, std::function<void(const std::string&)> remark,
                     std::function<void()> tick)
    : settings_(settings),
      remark_(std::move(remark)),
      tick_(std::move(tick)),
      origin_(origin_of(settings.endpoint)),
      http_(settings.stall_seconds) {}

HttpAnswer HubClient::follow(std::string url, const std::vector<std::string>& headers, const Take& take) {
  for (int hop = 0; hop <= kRedirects; ++hop) {
    HttpRequest request{url, headers};
    const std::string origin = origin_of(url);
    if (origin == origin_ && !settings_.token.empty())
      request.headers.push_back("Authorization: Bearer " + settings_.token);
    HttpAnswer answer = http_.get(request, take, tick_);
    reached_ = reached_ || answer.status != 0;
    if (!is_redirect(answer)) return answer;
    if (origin.starts_with("https:") && !answer.redirect.starts_with("https:"))
      throw Error(ErrorCode::io, fmt::format("{} leads on to {}, which is not protected", url, answer.redirect),
                  "is there a proxy or a sign-in page in between?");
    url = answer.redirect;
  }
  throw Error(ErrorCode::io, fmt::format("{}: led from one address to another more than {} times", url, kRedirects),
              "check HF_ENDPOINT");
}

void HubClient::wait_or_fail(const HttpAnswer& answer, const std::string& subject, int tries) {
  if (!answer.connected && !reached_) unreachable(answer.fault, settings_);
  const std::int64_t asked = number(answer.header("retry-after")).value_or(-1);
  if (tries >= kTries || asked > kLongestWait) {
    if (answer.fault.empty()) refuse(answer, subject, settings_);
    throw Error(ErrorCode::io, fmt::format("{}: {}, {} times in a row", subject, answer.fault, tries),
                "check the network; the same command goes on where it stopped");
  }
  const std::int64_t seconds = asked >= 0 ? asked : std::int64_t{1} << (tries - 1);
  remark_(fmt::format(
      "{}: {}; trying again in {} s", subject,
      answer.fault.empty() ? fmt::format("the hub answered with status {}", answer.status) : answer.fault, seconds));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < until) {
    tick_();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

std::string HubClient::get(const std::string& path, const std::string& subject) {
  for (int tries = 1;; ++tries) {
    std::string text;
    const HttpAnswer answer = follow(
        settings_.endpoint + path, {"Accept: application/json"}, [&](const HttpAnswer& a, std::string_view piece) {
          if (a.status == 200) text += piece;
          if (text.size() > kLongestText)
            throw Error(ErrorCode::bad_input, fmt::format("{}: the hub's answer does not end", subject));
          return true;
        });
    if (answer.fault.empty() && answer.status == 200) return text;
    if (!may_pass(answer)) refuse(answer, subject, settings_);
    wait_or_fail(answer, subject, tries);
  }
}

void HubClient::download(const std::string& path, const std::string& subject, std::int64_t bytes, PartialFile& file,
                         const std::function<void(std::int64_t)>& at) {
  if (file.size() > bytes) file.restart();
  std::string tag;  // of the version of which we have a part
  for (int tries = 1; file.size() < bytes; ++tries) {
    const std::int64_t before = file.size();
    std::vector<std::string> headers;
    if (before > 0) headers.push_back(fmt::format("Range: bytes={}-", before));
    if (before > 0 && !tag.empty()) headers.push_back("If-Range: " + tag);
    bool begun = false, misplaced = false;
    const HttpAnswer answer =
        follow(settings_.endpoint + path, headers, [&](const HttpAnswer& a, std::string_view piece) {
          if (a.status != 200 && a.status != 206) return true;  // the words of an error
          if (!begun) {
            const std::string now = a.header("etag");
            misplaced =
                a.status == 206 && (!continues(a, before, bytes) || (!tag.empty() && !now.empty() && now != tag));
            if (misplaced) return false;
            begun = true;
            tag = now.starts_with("W/") ? "" : now;
            if (a.status == 200) {
              file.restart();
              const auto length = number(a.header("content-length"));
              if (length && *length != bytes)
                throw Error(ErrorCode::io,
                            fmt::format("{}: the hub sends {} bytes but lists {}", subject, *length, bytes),
                            "is there a proxy or a sign-in page in between? HF_ENDPOINT names another hub");
            }
          }
          if (static_cast<std::int64_t>(piece.size()) > bytes - file.size())
            throw Error(ErrorCode::io, fmt::format("{}: the hub sends more than the {} bytes it lists", subject, bytes),
                        "fetch it again; HF_ENDPOINT names another hub");
          file.append(piece);
          at(file.size());
          return true;
        });
    if (misplaced || answer.status == 416) {  // another file by now, or a server that cannot count: all of it, then
      file.restart();
      tag.clear();
      if (tries >= kTries) refuse(answer, subject, settings_);
      continue;
    }
    if (file.size() > before) tries = 0;  // it does go on
    const bool ended = answer.fault.empty() && (answer.status == 200 || answer.status == 206);
    if (file.size() == bytes) break;
    if (!ended && !may_pass(answer)) refuse(answer, subject, settings_);
    HttpAnswer seen = answer;
    if (ended) seen.fault = fmt::format("the hub stopped after {} of {} bytes", file.size(), bytes);
    wait_or_fail(seen, subject, std::max(tries, 1));
  }
  file.flush();
}

}  // namespace regard
