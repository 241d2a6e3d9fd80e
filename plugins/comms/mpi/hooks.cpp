// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include <unistd.h>

#include <cstdlib>

namespace tenon_mpi {

namespace {

struct Setting {
  const char* name;
  const char* value;
  bool yields = false;  // to a value that is set
};
// Open MPI asks each kind of shared memory whether it works, and of posix leaves the file open with which it tried; it
// would choose another one all the same. In a world of one it starts a daemon, and leaves a pipe to it open.
constexpr Setting kSettings[] = {{"OMPI_MCA_ess_singleton_isolated", "1", true},
                                 {"OMPI_MCA_opal_signal", ""},
                                 {"OMPI_MCA_shmem", "^posix", true},
                                 {"UCX_HANDLE_ERRORS", "none"},
                                 {"UCX_ERROR_SIGNALS", ""},
                                 {"UCX_MEM_EVENTS", "n"}};
constexpr int kLimits[] = {RLIMIT_AS,     RLIMIT_CORE,  RLIMIT_DATA, RLIMIT_MEMLOCK,
                           RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_STACK};

// Open is called by one thread.
std::map<std::string, std::string> environment_now() {
  std::map<std::string, std::string> result;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string text = *each;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) result[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return result;
}

}  // namespace

Hooks::Hooks() : environment_(environment_now()) {
  for (const Setting& setting : kSettings)
    setenv(setting.name, setting.value, setting.yields ? 0 : 1);  // NOLINT(concurrency-mt-unsafe)
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0) handlers_.emplace_back(signal, action);
  }
  for (const int limit : kLimits) {
    rlimit values{};
    if (getrlimit(static_cast<__rlimit_resource_t>(limit), &values) == 0) limits_.emplace_back(limit, values);
  }
}

Hooks::~Hooks() {
  for (const auto& [limit, values] : limits_) setrlimit(static_cast<__rlimit_resource_t>(limit), &values);
  for (const auto& [signal, action] : handlers_) sigaction(signal, &action, nullptr);
  const std::map<std::string, std::string> now = environment_now();
  for (const auto& [name, value] : now)
    if (environment_.count(name) == 0) unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  for (const auto& [name, value] : environment_)
    if (const auto present = now.find(name); present == now.end() || present->second != value)
      setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace tenon_mpi
