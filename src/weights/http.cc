#include "weights/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>

#include "tensor/error.h"

namespace regard {

namespace {

// What libcurl's callbacks share in one exchange. No exception may leave through libcurl: it waits in `thrown`.
struct Exchange {
  CURL* curl;
  HttpAnswer answer;
  const std::function<bool(const HttpAnswer&, std::string_view)>& take;
  const std::function<void()>& tick;
  std::exception_ptr thrown = nullptr;

  template <typename Work>
  bool guarded(const Work& work) {
    try {
      return work();
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
};

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

std::size_t on_header(const char* data, std::size_t, std::size_t bytes, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  const bool ok = exchange.guarded([&] {
    const std::string_view line(data, bytes);
    if (line.starts_with("HTTP/")) exchange.answer.headers.clear();  // the last answer counts: after a 100 or a proxy's
    if (const std::size_t colon = line.find(':'); colon != line.npos)
      exchange.answer.headers[lower(std::string(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
    return true;
  });
  return ok ? bytes : 0;
}

std::size_t on_body(const char* data, std::size_t, std::size_t bytes, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  const bool ok = exchange.guarded([&] {
    long status = 0;
    curl_easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &status);
    exchange.answer.status = static_cast<int>(status);
    return exchange.take(exchange.answer, {data, bytes});
  });
  return ok ? bytes : 0;  // anything but `bytes` ends the exchange; no bytes at all are never handed over
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  return exchange.guarded([&] { return exchange.tick(), true; }) ? 0 : 1;
}

}  // namespace

struct Http::Handle {
  CURL* curl = nullptr;
  char error[CURL_ERROR_SIZE] = "";
  Handle() {
    static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (global != CURLE_OK || (curl = curl_easy_init()) == nullptr)
      throw Error(ErrorCode::io, "the library for downloads (libcurl) cannot be started");
  }
  ~Handle() { curl_easy_cleanup(curl); }
};

std::string HttpAnswer::header(const std::string& name) const {
  const auto at = headers.find(name);
  return at == headers.end() ? "" : at->second;
}

Http::Http(int stall_seconds) : handle_(std::make_unique<Handle>()) {
  CURL* curl = handle_->curl;
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "regard");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(std::min(stall_seconds, 30)));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_seconds));
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);  // bytes; a file is written in such pieces
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, handle_->error);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  for (const char* variable : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
    if (const char* file = std::getenv(variable); file != nullptr && *file != '\0')
      curl_easy_setopt(curl, CURLOPT_CAINFO, file);
}

Http::~Http() = default;

HttpAnswer Http::get(const HttpRequest& request, const std::function<bool(const HttpAnswer&, std::string_view)>& take,
                     const std::function<void()>& tick) {
  CURL* curl = handle_->curl;
  Exchange exchange{curl, {}, take, tick};
  const std::unique_ptr<curl_slist*, void (*)(curl_slist**)> headers(
      new curl_slist*(nullptr), [](curl_slist** list) { curl_slist_free_all(*list), delete list; });
  for (const std::string& header : request.headers) {
    curl_slist* longer = curl_slist_append(*headers, header.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    *headers = longer;
  }
  handle_->error[0] = '\0';
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *headers);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);

  HttpAnswer& answer = exchange.answer;
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  const char* redirect = nullptr;
  if (curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &redirect) == CURLE_OK && redirect != nullptr)
    answer.redirect = redirect;
  if (code == CURLE_OK) return std::move(answer);
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
    throw Error(ErrorCode::bad_input, fmt::format("{} is no http address", request.url));
  answer.fault = handle_->error[0] != '\0' ? handle_->error : curl_easy_strerror(code);
  std::replace(answer.fault.begin(), answer.fault.end(), '\n', ' ');
  answer.connected = code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
                     code != CURLE_COULDNT_RESOLVE_PROXY && code != CURLE_SSL_CONNECT_ERROR &&
                     code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE;
  return std::move(answer);
}

std::string origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  if (!parsed) throw std::bad_alloc();
  std::string origin;
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK)
    for (const CURLUPart part : {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT}) {
      char* text = nullptr;
      if (curl_url_get(parsed.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) break;
      origin += (part == CURLUPART_SCHEME ? "" : part == CURLUPART_HOST ? "://" : ":") + lower(text);
      curl_free(text);
      if (part == CURLUPART_PORT) return origin;
    }
  throw Error(ErrorCode::bad_input, fmt::format("{} is no http address", url));
}

std::string percent_encoded(std::string_view text, std::string_view also) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || also.find(c) != also.npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace regard
