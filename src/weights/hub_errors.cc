#include "weights/hub_errors.h"

#include "tensor/error.h"

namespace regard {

namespace {

// The server's own words, as far as they are words.
std::string words_of(const HttpAnswer& answer) {
  std::string text = answer.header("x-error-message").substr(0, 200);
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text.empty() ? text : " (" + text + ")";
}

std::string repository_of(const std::string& subject) { return subject.substr(0, subject.find_first_of(",@:")); }

}  // namespace

void refuse(const HttpAnswer& answer, const std::string& subject, const HubSettings& settings) {
  const std::string code = answer.header("x-error-code"), words = words_of(answer);
  const std::string with_token = "set HF_TOKEN to a token that may read it";
  const auto says = [&](const std::string& what) { return fmt::format("{}: {}{}", subject, what, words); };
  if (code == "GatedRepo" || (answer.status == 403 && code != "RepoNotFound"))
    throw Error(ErrorCode::io, says("the hub gives it only to people who were granted access"),
                fmt::format("ask for it at {}/{}, then {}", settings.endpoint, repository_of(subject),
                            settings.token.empty() ? with_token : "make sure that the token may read such models"));
  if (code == "RevisionNotFound")
    throw Error(ErrorCode::not_found, says("the hub has no such revision"),
                "leave out @..., or name a branch, tag or commit");
  if (code == "EntryNotFound") throw Error(ErrorCode::not_found, says("the hub has no such file"), "fetch it again");
  if (answer.status == 401 && !settings.token.empty())
    throw Error(ErrorCode::io, says("the hub does not accept the token, or has no such model"),
                fmt::format("check the name, and the token of {}", settings.token_from));
  if (answer.status == 401 || answer.status == 404 || code == "RepoNotFound")
    throw Error(ErrorCode::not_found,
                says(fmt::format("{} has no such model, or shows it only to some", settings.endpoint)),
                fmt::format("check the name; if it is private, {}",
                            settings.token.empty() ? with_token : "use a token that may read it"));
  if (answer.status == 407)
    throw Error(ErrorCode::io, says("the proxy wants a name and a password"),
                "put them into https_proxy: http://NAME:PASSWORD@HOST:PORT");
  if (answer.status == 429)
    throw Error(ErrorCode::io, says("the hub says that these are too many requests"),
                settings.token.empty() ? "wait some minutes, or set HF_TOKEN: the hub allows more to those it knows"
                                       : "wait some minutes, then the same command goes on");
  if (answer.status >= 500)
    throw Error(ErrorCode::io, says(fmt::format("the hub is out of order, status {}", answer.status)),
                "try later; the same command goes on where it stopped");
  throw Error(ErrorCode::io, says(fmt::format("the hub answered with status {}", answer.status)),
              "is there a proxy or a sign-in page in between? HF_ENDPOINT names another hub");
}

void unreachable(const std::string& fault, const HubSettings& settings) {
  throw Error(ErrorCode::io, fmt::format("{} cannot be reached: {}", settings.endpoint, fault),
              fault.find("certificate") != fault.npos
                  ? "SSL_CERT_FILE names a file of the certificates to trust"
                  : "check the network; HF_ENDPOINT names a mirror, https_proxy a proxy");
}

}  // namespace regard
