// Requests to the API of Kubernetes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/not_copied.h"
#include "cluster/access.h"
#include "launch/events.h"

namespace tenon::cluster {

using Clock = launch::Clock;

struct Reply {
  int status = 0;  // of HTTP; 0: there was none, and `text` says why
  std::string text;
  int retry_after = 0;  // seconds, if the server says so

  [[nodiscard]] bool is_good() const { return status >= 200 && status < 300; }
  // Whether it is an object of JSON, and for an error a Status.
  [[nodiscard]] bool is_of_kubernetes() const;
  [[nodiscard]] json body() const;
  // Returns what a Status says, or the text: "pods is forbidden: ...".
  [[nodiscard]] std::string message() const;
  [[nodiscard]] std::string reason() const;
};

// Returns a text for the query of a path.
[[nodiscard]] std::string escaped(const std::string& text);

class Request;
using Handle = std::unique_ptr<void, void (*)(void*)>;  // what libcurl has made, and what frees it

// One thread alone uses it.
class Api : base::NotCopied {
 public:
  // tell: called with a remark, such as that the server is away. poll: called several times a second while the object
  // waits; what it throws ends the wait.
  Api(Access access, std::function<void(const std::string&)> tell, std::function<void()> poll);

  [[nodiscard]] const Access& access() const { return access_; }
  // Returns the path of objects of the namespace: "/api/v1/namespaces/default/pods", of the group "" or "batch/v1".
  [[nodiscard]] std::string path(const std::string& group, const std::string& kind, const std::string& name = "") const;

  // Does a request, again after failures of the connection, 408, 429, 500, 502 to 504, and answers that are none of
  // Kubernetes, for at most this time. Returns the first other reply, which is_of_kubernetes(). Throws cli::Failure:
  // kRefused for 401 and for certificates that are not good, kIo if the server is away.
  [[nodiscard]] Reply call(const std::string& method, const std::string& path, const json& body = nullptr,
                           std::chrono::seconds patience = std::chrono::seconds(60));
  // The same; throws cli::Failure for replies that are no success, naming verb, kind and namespace: kRefused for 403,
  // kNotFound for 404, kBadConfig for others from 400 on.
  json get(const std::string& path);
  // Creates an object. One with its name that was created by a request whose answer was lost is taken for it.
  json create(const std::string& path, const json& object);
  // Deletes an object with all that it owns. Returns false if there is none.
  bool remove(const std::string& path);

  // Does a request for what is no object, such as a log, once.
  [[nodiscard]] Reply text(const std::string& path) { return call_once("GET", path, ""); }

  // Begins to read a reply, whose body `take` gets as it comes; it lives as long as what is returned.
  [[nodiscard]] std::unique_ptr<Request> stream(const std::string& path, std::function<void(std::string_view)> take);
  // Begins a connection for WebSocket: what it returns is connected when it is over.
  [[nodiscard]] std::unique_ptr<Request> connect();
  // The line of a request that carries the token; empty without one.
  [[nodiscard]] std::string authorization();
  // Waits for something to happen in streams, at most until then.
  void turn(Clock::time_point until);

  // Throws the cli::Failure of a reply that is no success. method, path: of the request.
  [[noreturn]] void fail(const Reply& reply, const std::string& method, const std::string& path) const;

  // Asks the plugin of credentials again, after a stream that was refused with 401.
  void renew();

 private:
  friend Request;
  void pause(std::chrono::milliseconds time);
  [[nodiscard]] Reply call_once(const std::string& method, const std::string& path, const std::string& body);

  Access access_;
  const std::function<void(const std::string&)> tell_;
  const std::function<void()> poll_;
  Handle multi_;
  bool is_away_ = false;  // was told
};

// A request that is under way or over.
class Request : base::NotCopied {
 public:
  Request(Api& api, const std::string& method, const std::string& path);
  ~Request();

  [[nodiscard]] bool is_over() const { return over_; }
  // Of one that is over.
  [[nodiscard]] const Reply& reply() const { return reply_; }
  [[nodiscard]] void* handle() const { return easy_.get(); }

 private:
  friend Api;
  static size_t on_body(char* bytes, size_t one, size_t count, void* request);
  static size_t on_head(char* bytes, size_t one, size_t count, void* request);
  void finish(int code);

  Api& api_;
  Handle headers_, targets_, easy_;  // the last one uses the others
  std::string body_;
  std::function<void(std::string_view)> take_;  // empty: the body is kept
  char error_[256] = "";
  Reply reply_;
  bool over_ = false;
  bool is_refused_ = false;  // certificates are not good
};

}  // namespace tenon::cluster
