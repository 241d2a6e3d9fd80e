// SPDX-License-Identifier: Apache-2.0
#include "check/watch/process_state.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>

namespace tenon::check {

namespace {

namespace fs = std::filesystem;

std::vector<ProcessState::Handler> handlers_now() {
  std::vector<ProcessState::Handler> result;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    result.push_back(sigaction(signal, nullptr, &action) == 0 ? action.sa_handler : SIG_DFL);
  }
  return result;
}

std::vector<int> descriptors_now() {
  std::vector<int> result;
  const auto most = static_cast<int>(sysconf(_SC_OPEN_MAX));
  for (int descriptor = 0; descriptor < std::min(most, 1024); ++descriptor)
    if (fcntl(descriptor, F_GETFD) != -1) result.push_back(descriptor);
  return result;
}

mode_t mask_now() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

std::vector<std::string> environment_now() {
  std::vector<std::string> result;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) result.emplace_back(*each);
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::pair<rlim_t, rlim_t>> limits_now() {
  std::vector<std::pair<rlim_t, rlim_t>> result;
  for (int resource = 0; resource < static_cast<int>(RLIM_NLIMITS); ++resource) {
    rlimit limit = {};
    getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    result.emplace_back(limit.rlim_cur, limit.rlim_max);
  }
  return result;
}

bool is_running(__itimer_which which) {
  itimerval timer = {};
  return getitimer(which, &timer) == 0 && (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0);
}
// The microseconds until the alarm of the process, 0 without one.
int64_t alarm_now() {
  itimerval timer = {};
  getitimer(ITIMER_REAL, &timer);
  return int64_t{1'000'000} * timer.it_value.tv_sec + timer.it_value.tv_usec;
}

// "7, /etc/hosts"
std::string text_of(int descriptor) {
  std::error_code error;
  const fs::path file = fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error);
  return std::to_string(descriptor) + (error ? "" : ", " + file.string());
}

// Returns the name of a variable that is in one of the environments alone, or has another value there.
std::string changed_variable(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::vector<std::string> changed;
  std::set_symmetric_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(changed));
  return changed.empty() ? "" : changed[0].substr(0, changed[0].find('='));
}

std::string locale_now() {
  const char* const name = std::setlocale(LC_ALL, nullptr);
  return name == nullptr ? "" : name;
}

// The bytes of standard output so far, a file.
off_t written_now() {
  std::fflush(stdout);
  return lseek(STDOUT_FILENO, 0, SEEK_CUR);
}

std::string text_since(off_t begin) {
  char text[60];
  const ssize_t got = pread(STDOUT_FILENO, text, sizeof text, begin);
  return {text, static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace

void confine_process() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)),
             page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const rlim_t most = std::min<uint64_t>(uint64_t{8} << 30, pages * page / 2);
  rlimit limit = {};
  if (getrlimit(RLIMIT_DATA, &limit) == 0) {
    limit.rlim_cur = std::min(limit.rlim_cur, most);
    setrlimit(RLIMIT_DATA, &limit);
  }
  pthread_atfork(nullptr, nullptr, [] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) _exit(1);
  });
  FILE* const file = std::tmpfile();
  if (file == nullptr) return;  // then output is not looked at
  std::fflush(stdout);
  dup2(fileno(file), STDOUT_FILENO);
  std::fclose(file);
}

ProcessState::ProcessState()
    : handlers(handlers_now()),
      mode(floating_point()),
      descriptors(descriptors_now()),
      folder(fs::current_path().string()),
      locale(locale_now()),
      mask(mask_now()),
      environment(environment_now()),
      limits(limits_now()),
      timers({is_running(ITIMER_VIRTUAL), is_running(ITIMER_PROF)}),
      priority(getpriority(PRIO_PROCESS, 0)),
      written(written_now()) {}

void expect_unchanged(const ProcessState& start, const std::function<void()>& work, const Expectation& expect) {
  ProcessState before = start;
  before.handlers[SIGALRM - 1] = handlers_now()[SIGALRM - 1];  // the kit's own, for the time limit of a check
  const int64_t alarm_before = alarm_now();
  work();
  const int64_t alarm_after = alarm_now();
  const ProcessState after;
  set_floating_point(before.mode);
  for (size_t i = 0; i < before.handlers.size(); ++i)
    expect(before.handlers[i] == after.handlers[i],
           "it changes the handler of signal " + std::to_string(i + 1) + " of the process");
  expect(before.mode == after.mode, "it changes the floating-point mode of the process");
  expect(std::includes(after.descriptors.begin(), after.descriptors.end(), before.descriptors.begin(),
                       before.descriptors.end()),
         "it closes a descriptor of the process");
  for (const int each : after.descriptors)
    expect(std::binary_search(before.descriptors.begin(), before.descriptors.end(), each),
           "it leaves a descriptor open: " + text_of(each));
  expect(before.mask == after.mask, "it changes the mask of new files (umask) of the process");
  expect(before.environment == after.environment, "it changes the environment of the process: \"" +
                                                      changed_variable(before.environment, after.environment) + "\"");
  for (size_t i = 0; i < before.limits.size(); ++i)
    expect(before.limits[i] == after.limits[i],
           "it changes the limit of resource " + std::to_string(i) + " of the process (setrlimit)");
  expect(before.timers == after.timers && (alarm_before > 0) == (alarm_after > 0) && alarm_after <= alarm_before,
         "it changes a timer of the process (alarm, setitimer)");
  expect(before.priority == after.priority, "it changes the priority of the process");
  expect(before.folder == after.folder, "it changes the working directory of the process");
  expect(before.locale == after.locale, "it changes the locale of the process");
  expect(before.written == after.written, "it writes to standard output: \"" + text_since(before.written) + "\"");
}

}  // namespace tenon::check
