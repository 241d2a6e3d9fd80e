// SPDX-License-Identifier: Apache-2.0
#include "host/cli/seal/describe.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "host/cli/cli.h"
#include "host/cli/seal/replace.h"
#include "sdk/manifest/manifest.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void refuse(const std::string& why) { throw Failure(kRefused, why); }

// Returns the reason of the last failure of this thread, without the file, which the caller names.
std::string load_failure(const fs::path& file) {
  const char* const reason = dlerror();
  std::string result = reason == nullptr ? "the system loader gave no reason" : reason;
  if (const std::string prefix = file.string() + ": "; result.rfind(prefix, 0) == 0) result.erase(0, prefix.size());
  return result;
}

// Loads the file, if need be without the libraries that cannot be loaded. It stays loaded: the process ends soon.
void* load(const fs::path& file, Image image, std::vector<std::string>& without) {
  constexpr int kMode = RTLD_LAZY | RTLD_LOCAL;
  if (void* const loaded = dlopen(file.c_str(), kMode)) return loaded;
  const std::string reason = load_failure(file);
  for (const std::string& library : image.needed())
    if (dlopen(library.c_str(), kMode) == nullptr) without.push_back(library);
  if (without.empty()) refuse("it cannot be loaded: " + reason);
  image.leave_out(without);
  const TemporaryFile copy(file, image.bytes());
  if (void* const loaded = dlopen(copy.path().c_str(), kMode)) return loaded;
  refuse("it cannot be loaded without " + without.front() + ": " + load_failure(copy.path()));
}

const tn_plugin* descriptor(void* loaded) {
  const auto entry = reinterpret_cast<tn_entry>(dlsym(loaded, TN_ENTRY_NAME));
  if (entry == nullptr) refuse("it does not export the symbol " TN_ENTRY_NAME);
  try {
    return entry();
  } catch (const std::exception& thrown) {
    refuse(std::string(TN_ENTRY_NAME " threw an exception: ") + thrown.what());
  } catch (...) {
    refuse(TN_ENTRY_NAME " threw an exception of unknown type");
  }
}

// Returns {manifest, without} or {error}.
json describe_here(const fs::path& file, const Image& image) try {
  std::vector<std::string> without;
  const auto manifest = std::make_unique<tn_manifest>();
  if (tn_manifest_write(manifest.get(), descriptor(load(file, image, without))) == 0)
    return {{"error", "its descriptor is refused: " + std::string(manifest->error)}};
  return {{"manifest", std::string(manifest->text, manifest->length)}, {"without", without}};
} catch (const std::exception& failure) {
  return {{"error", failure.what()}};
}

void write_all(int to, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(to, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno != EINTR) return;  // the parent finds the text incomplete
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
}

std::string read_all(int from) {
  std::string result;
  char part[4096];
  for (;;) {
    const ssize_t got = read(from, part, sizeof part);
    if (got > 0) result.append(part, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return result;
  }
}

// Waits for the child, which gave no description, and returns the reason.
std::string failure_of(pid_t child, unsigned seconds) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return "its code did not return within " + std::to_string(seconds) + " seconds when it was loaded and described";
  const std::string how = WIFSIGNALED(status)
                              ? "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")"
                              : "exit code " + std::to_string(WEXITSTATUS(status));
  return "its code ended the process in which it was loaded and described, by " + how;
}

// Ends this process by SIGALRM in so many seconds.
void end_in(unsigned seconds) {
  std::signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(seconds);
}

[[noreturn]] void fail_system(const char* what) {
  throw Failure(kIo, std::string(what) + ": " + std::generic_category().message(errno));
}

}  // namespace

Described describe_plugin(const fs::path& file, const Image& image, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) fail_system("cannot create a pipe");
  std::cout.flush();  // else the child might print it again
  std::cerr.flush();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    end_in(seconds);
    write_all(ends[1], describe_here(file, image).dump(-1, ' ', false, json::error_handler_t::replace));
    _exit(0);
  }
  close(ends[1]);
  const int failure = errno;
  const std::string answer = child < 0 ? "" : read_all(ends[0]);
  close(ends[0]);
  errno = failure;
  if (child < 0) fail_system("cannot start a process");
  const std::string failed = failure_of(child, seconds);
  const json described = json::parse(answer, nullptr, false);
  if (described.is_discarded()) refuse(failed);
  if (described.contains("error")) refuse(described.at("error"));
  return {described.at("manifest"), described.at("without")};
}

}  // namespace tenon::cli
