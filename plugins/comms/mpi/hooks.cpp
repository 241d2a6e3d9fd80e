// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include <cstdlib>

namespace tenon_mpi {

namespace {

struct Setting {
  const char* name;
  const char* value;
};
constexpr Setting kSettings[] = {
    {"OMPI_MCA_opal_signal", ""}, {"UCX_HANDLE_ERRORS", "none"}, {"UCX_ERROR_SIGNALS", ""}, {"UCX_MEM_EVENTS", "n"}};
constexpr int kLimits[] = {RLIMIT_AS,     RLIMIT_CORE,  RLIMIT_DATA, RLIMIT_MEMLOCK,
                           RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_STACK};

}  // namespace

Hooks::Hooks() {
  for (const Setting& setting : kSettings) {
    const char* value = std::getenv(setting.name);  // NOLINT(concurrency-mt-unsafe): open is called by one thread
    environment_.emplace_back(setting.name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
    setenv(setting.name, setting.value, 1);  // NOLINT(concurrency-mt-unsafe)
  }
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
  for (const auto& [name, value] : environment_)
    value ? setenv(name, value->c_str(), 1) : unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace tenon_mpi
