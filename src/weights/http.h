#pragma once
// HTTP, by libcurl: one exchange at a time, over connections that are kept. Redirects are not followed here: who
// follows one decides what goes along (hub_client.h). Proxies as libcurl finds them in the environment (https_proxy,
// no_proxy,
// ...); certificates of SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE when one of them is set.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Range: bytes=5-"
};

struct HttpAnswer {
  int status = 0;                              // 0: none came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string redirect;                        // where a 3xx leads, absolute; empty for none
  std::string fault;                           // why it did not come whole; empty: it did
  bool connected = true;                       // false: the fault was that nobody could be reached

  std::string header(const std::string& name) const;  // empty when it is not there
};

class Http {
 public:
  // `stall_seconds`: an exchange in which less than a byte a second comes for so long has failed.
  explicit Http(int stall_seconds);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // GET. `take` gets the body piece by piece, with the answer as far as it is known; false ends the exchange (as a
  // fault). `tick` is called several times a second. What they throw leaves from here. Error{bad_input} for what is no
  // http address.
  HttpAnswer get(const HttpRequest& request, const std::function<bool(const HttpAnswer&, std::string_view)>& take,
                 const std::function<void()>& tick);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

// "https://host:8080" of "https://host:8080/a/b": what decides whether two addresses are one place. In lower case, with
// the port even when it is the usual one.
std::string origin_of(const std::string& url);

// For a part of an address: everything but letters, digits and -._~ (and those of `also`) as %XX.
std::string percent_encoded(std::string_view text, std::string_view also = {});

}  // namespace regard
