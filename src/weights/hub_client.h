#pragma once
// Asking a hub for things: redirects followed without giving the token away, broken downloads resumed, busy servers
// waited for.

#include <cstdint>
#include <functional>
#include <string>

#include "weights/http.h"
#include "weights/hub_settings.h"
#include "weights/partial_file.h"

namespace regard {

class HubClient {
 public:
  // `remark` is told what went wrong when it is tried again; `tick` is called several times a second and may throw,
  // which ends the work.
  HubClient(const HubSettings& settings, std::function<void(const std::string&)> remark, std::function<void()> tick);

  // The text at `path` ("/api/..."), at most 64 MiB. Errors: hub_errors.h; `subject` is what they are about.
  std::string get(const std::string& path, const std::string& subject);

  // The rest of a file of `bytes` bytes in all, appended to what is there. From the start where the server does not
  // resume, or has another file by now. `at` is told its size now and then. Errors: hub_errors.h; io for a file of
  // another length. Whether the bytes are right is for a checksum to say.
  void download(const std::string& path, const std::string& subject, std::int64_t bytes, PartialFile& file,
                const std::function<void(std::int64_t)>& at);

 private:
  using Take = std::function<bool(const HttpAnswer&, std::string_view)>;
  HttpAnswer follow(std::string url, const std::vector<std::string>& headers, const Take& take);
  // After an exchange that failed: waits and returns, or throws when it was tried often enough.
  void wait_or_fail(const HttpAnswer& answer, const std::string& subject, int tries);

  const HubSettings& settings_;
  std::function<void(const std::string&)> remark_;
  std::function<void()> tick_;
  std::string origin_;
  Http http_;
  bool reached_ = false;  // anybody, ever: a network that was there may come back
};

}  // namespace regard
