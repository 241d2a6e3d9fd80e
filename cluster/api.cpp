// SPDX-License-Identifier: Apache-2.0
#include "cluster/api.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "base/whole_number.h"
#include "cluster/members.h"
#include "cluster/objects.h"
#include "host/cli/cli.h"

namespace tenon::cluster {

namespace {

using cli::Failure;
using std::chrono::milliseconds;

constexpr milliseconds kTurn(100);
constexpr milliseconds kFirstPause(200), kLongestPause(5000);
constexpr long kConnectMs = 10'000, kAnswerMs = 30'000;  // NOLINT(google-runtime-int)
constexpr size_t kMostBody = 64 << 20;                   // bytes that are kept

CURL* easy_of(const Handle& handle) { return handle.get(); }
void free_multi(void* multi) { curl_multi_cleanup(multi); }
void free_list(void* list) { curl_slist_free_all(static_cast<curl_slist*>(list)); }

bool is_of_certificates(int code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE;
}

// Whether another try may have another answer.
bool may_come(const Reply& reply) {
  constexpr std::array<int, 7> kLater = {0, 408, 429, 500, 502, 503, 504};
  return std::find(kLater.begin(), kLater.end(), reply.status) != kLater.end() || !reply.is_of_kubernetes();
}

// Returns the server's address, by the name that its certificate has.
std::string url_of(const Access& access) {
  if (access.server_name.empty()) return access.server;
  const ServerParts parts = parts_of(access.server);
  return parts.scheme + "://" + access.server_name + ":" + parts.port + parts.path;
}

void set_text(CURL* easy, CURLoption option, const std::string& text) {
  if (!text.empty()) curl_easy_setopt(easy, option, text.c_str());
}

void set_blob(CURL* easy, CURLoption option, const std::string& text) {
  if (text.empty()) return;
  curl_blob blob = {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};  // NOLINT(*-const-cast)
  curl_easy_setopt(easy, option, &blob);
}

}  // namespace

std::string escaped(const std::string& text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string result;
  for (const unsigned char letter : text) {
    const bool is_plain = std::isalnum(letter) != 0 || letter == '-' || letter == '.' || letter == '_' || letter == '/';
    if (is_plain)
      result += static_cast<char>(letter);
    else
      (result += '%').append({kDigits[letter >> 4U], kDigits[letter & 15U]});
  }
  return result;
}

json Reply::body() const { return parse_json(text); }

std::string Reply::message() const {
  const json answer = body();
  const std::string said = answer.is_object() ? text_of(answer, "message") : text.substr(0, 300);
  return said.empty() ? "status " + std::to_string(status) : said;
}

std::string Reply::reason() const { return text_of(body(), "reason"); }

// A gateway, a proxy or a server that is just being replaced answers what is no answer of Kubernetes.
bool Reply::is_of_kubernetes() const {
  const json answer = body();
  return answer.is_object() && (is_good() || text_of(answer, "kind") == "Status");
}

Api::Api(Access access, std::function<void(const std::string&)> tell, std::function<void()> poll)
    : access_(std::move(access)), tell_(std::move(tell)), poll_(std::move(poll)), multi_(nullptr, free_multi) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  multi_.reset(curl_multi_init());
  renew();
}

std::string Api::path(const std::string& group, const std::string& kind, const std::string& name) const {
  return (group.empty() ? "/api/v1" : "/apis/" + group) + "/namespaces/" + access_.space + "/" + kind +
         (name.empty() ? "" : "/" + name);
}

void Api::renew() {
  if (access_.plugin) ask_plugin(access_, poll_);
}

std::string Api::authorization() {
  std::string token = access_.token;
  if (token.empty() && !access_.token_file.empty()) {
    std::ifstream file(access_.token_file);
    token.assign(std::istreambuf_iterator<char>(file), {});
    token.erase(token.find_last_not_of(" \t\r\n") + 1);
    if (token.empty()) throw Failure(cli::kRefused, "there is no token in \"" + access_.token_file + "\"");
  }
  return token.empty() ? "" : "Authorization: Bearer " + token;
}

void Api::turn(Clock::time_point until) {
  int running = 0;
  curl_multi_perform(multi_.get(), &running);
  int left = 0;
  bool has_ended = false;
  while (CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Request* request = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
    request->finish(message->data.result);
    has_ended = true;
  }
  if (has_ended) return;
  const auto time = std::clamp(std::chrono::ceil<milliseconds>(until - Clock::now()), milliseconds(0), kTurn);
  curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(time.count()), nullptr);
  if (poll_) poll_();
}

void Api::pause(milliseconds time) {
  for (const Clock::time_point until = Clock::now() + time; Clock::now() < until;) turn(until);
}

Reply Api::call_once(const std::string& method, const std::string& path, const std::string& body) {
  Request request(*this, method, path);
  request.body_ = body;
  CURL* const easy = easy_of(request.easy_);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, kAnswerMs);
  if (!body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body_.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body_.data());
  }
  curl_multi_add_handle(multi_.get(), easy);
  while (!request.over_) turn(Clock::now() + kTurn);
  if (request.is_refused_)
    throw Failure(cli::kRefused, access_.server + ": the certificate is not good: " + request.reply_.text);
  return request.reply_;
}

Reply Api::call(const std::string& method, const std::string& path, const json& body, std::chrono::seconds patience) {
  const std::string text = body.is_null() ? "" : body.dump();
  const Clock::time_point until = Clock::now() + patience;
  milliseconds wait = kFirstPause;
  bool is_renewed = false;
  for (;;) {
    Reply reply = call_once(method, path, text);
    if (reply.status == 401 && access_.plugin && !is_renewed) {
      renew();  // its token may be over
      is_renewed = true;
      continue;
    }
    if (reply.status == 401)
      throw Failure(cli::kRefused, access_.server + ": the credentials of context \"" + access_.context +
                                       "\" are not accepted (401): " + reply.message());
    if (!may_come(reply)) {
      if (is_away_) tell_(access_.server + " answers again");
      is_away_ = false;
      return reply;
    }
    const std::string why = reply.status == 0 ? reply.text : std::to_string(reply.status) + ": " + reply.message();
    if (Clock::now() >= until) throw Failure(cli::kIo, access_.server + " does not answer: " + why);
    if (!is_away_ && wait >= 4 * kFirstPause) {
      tell_(access_.server + " does not answer (" + why + "); trying again for " + std::to_string(patience.count()) +
            " s");
      is_away_ = true;
    }
    pause(std::max<milliseconds>(wait, std::chrono::seconds(std::min(reply.retry_after, 30))));
    wait = std::min(2 * wait, kLongestPause);
  }
}

void Api::fail(const Reply& reply, const std::string& method, const std::string& path) const {
  const size_t kind = path.rfind('/', path.find('?'));
  const std::map<std::string, std::string> verbs = {{"POST", "create"}, {"DELETE", "delete"}, {"GET", "get"}};
  const std::map<int, int> exits = {{403, cli::kRefused}, {404, cli::kNotFound}};
  const auto exit = exits.find(reply.status);
  throw Failure(exit == exits.end() ? cli::kBadConfig : exit->second,
                access_.server + ": cannot " + verbs.at(method) + " " +
                    path.substr(kind + 1, path.find('?') - kind - 1) + " in the namespace \"" + access_.space + "\" (" +
                    std::to_string(reply.status) + "): " + reply.message());
}

json Api::get(const std::string& path) {
  const Reply reply = call("GET", path);
  if (!reply.is_good()) fail(reply, "GET", path);
  return reply.body();
}

json Api::create(const std::string& path, const json& object) {
  const std::string name = text_of(object, "metadata", "name");
  const Reply reply = call("POST", path, object);
  if (reply.status == 409 && reply.reason() == "AlreadyExists") {
    json there = get(path + "/" + name);
    if (text_of(member_of(there, "metadata"), "annotations", kDrawn) ==
        text_of(member_of(object, "metadata"), "annotations", kDrawn))
      return there;
  }
  if (!reply.is_good()) fail(reply, "POST", path);
  json created = reply.body();
  if (text_of(created, "metadata", "name") != name || text_of(created, "metadata", "uid").empty())
    throw Failure(cli::kIo, access_.server + path + ": the answer is not the object that was to be created");
  return created;
}

bool Api::remove(const std::string& path) {
  const Reply reply =
      call("DELETE", path, {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Foreground"}});
  if (!reply.is_good() && reply.status != 404) fail(reply, "DELETE", path);
  return reply.status != 404;
}

std::unique_ptr<Request> Api::stream(const std::string& path, std::function<void(std::string_view)> take) {
  auto request = std::make_unique<Request>(*this, "GET", path);
  request->take_ = std::move(take);
  curl_multi_add_handle(multi_.get(), request->easy_.get());
  return request;
}

std::unique_ptr<Request> Api::connect() {
  auto request = std::make_unique<Request>(*this, "GET", "/");
  curl_easy_setopt(easy_of(request->easy_), CURLOPT_CONNECT_ONLY, 1L);
  curl_multi_add_handle(multi_.get(), request->easy_.get());
  return request;
}

Request::Request(Api& api, const std::string& method, const std::string& path)
    : api_(api),
      headers_(nullptr, free_list),
      targets_(nullptr, free_list),
      easy_(curl_easy_init(), curl_easy_cleanup) {
  const Access& access = api.access_;
  CURL* const easy = easy_of(easy_);
  curl_easy_setopt(easy, CURLOPT_URL, (url_of(access) + path).c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &on_head);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  set_text(easy, CURLOPT_PROXY, access.proxy);
  if (!access.server_name.empty()) {  // that is in the certificate, while the connection goes to the address
    const ServerParts parts = parts_of(access.server);
    const std::string target = access.server_name + ":" + parts.port + ":" + parts.host + ":" + parts.port;
    targets_.reset(curl_slist_append(nullptr, target.c_str()));
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, targets_.get());
  }
  set_blob(easy, CURLOPT_CAINFO_BLOB, access.authority);
  set_blob(easy, CURLOPT_SSLCERT_BLOB, access.certificate);
  set_blob(easy, CURLOPT_SSLKEY_BLOB, access.key);
  if (access.is_insecure) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  set_text(easy, CURLOPT_USERNAME, access.user);
  set_text(easy, CURLOPT_PASSWORD, access.password);
  const std::string line = api.authorization();  // throws where there is none
  curl_slist* headers = curl_slist_append(nullptr, "Accept: application/json, */*");
  headers = curl_slist_append(headers, "Content-Type: application/json");
  headers = curl_slist_append(headers, "User-Agent: tenon/" TENON_VERSION);
  headers = curl_slist_append(headers, "Expect:");
  if (!line.empty()) headers = curl_slist_append(headers, line.c_str());
  headers_.reset(headers);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

Request::~Request() { curl_multi_remove_handle(api_.multi_.get(), easy_.get()); }

size_t Request::on_body(char* bytes, size_t /*one*/, size_t count, void* request) {
  auto& self = *static_cast<Request*>(request);
  long status = 0;  // NOLINT(google-runtime-int)
  curl_easy_getinfo(easy_of(self.easy_), CURLINFO_RESPONSE_CODE, &status);
  const bool is_taken = self.take_ && status >= 200 && status < 300;
  if (is_taken)
    self.take_(std::string_view(bytes, count));
  else if (self.reply_.text.size() + count <= kMostBody)
    self.reply_.text.append(bytes, count);
  else
    return 0;
  return count;
}

size_t Request::on_head(char* bytes, size_t /*one*/, size_t count, void* request) {
  constexpr std::string_view kName = "retry-after:";
  std::string line(bytes, count);
  std::transform(line.begin(), line.end(), line.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (!line.starts_with(kName)) return count;
  line.erase(0, line.find_first_not_of(' ', kName.size()));
  line.erase(line.find_last_not_of(" \r\n") + 1);
  static_cast<Request*>(request)->reply_.retry_after = base::whole_number<int>(line).value_or(0);
  return count;
}

void Request::finish(int code) {
  over_ = true;
  is_refused_ = is_of_certificates(code);
  long status = 0;  // NOLINT(google-runtime-int)
  curl_easy_getinfo(easy_of(easy_), CURLINFO_RESPONSE_CODE, &status);
  reply_.status = code == CURLE_OK ? static_cast<int>(status) : 0;
  if (code != CURLE_OK) reply_.text = error_[0] != '\0' ? error_ : curl_easy_strerror(static_cast<CURLcode>(code));
}

}  // namespace tenon::cluster
