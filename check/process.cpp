// SPDX-License-Identifier: Apache-2.0
#include "check/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "check/check_list.h"

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
      written(written_now()) {}

void expect_unchanged(Context& context, const std::function<void()>& work) {
  ProcessState before = context.process();
  before.handlers[SIGALRM - 1] = handlers_now()[SIGALRM - 1];  // the kit's own, for the time limit of a check
  work();
  const ProcessState after;
  set_floating_point(before.mode);
  for (size_t i = 0; i < before.handlers.size(); ++i)
    context.expect(before.handlers[i] == after.handlers[i],
                   "it changes the handler of signal " + std::to_string(i + 1) + " of the process");
  context.expect(before.mode == after.mode, "it changes the floating-point mode of the process");
  context.expect(std::includes(after.descriptors.begin(), after.descriptors.end(), before.descriptors.begin(),
                               before.descriptors.end()),
                 "it closes a descriptor of the process");
  context.expect(before.folder == after.folder, "it changes the working directory of the process");
  context.expect(before.locale == after.locale, "it changes the locale of the process");
  context.expect(before.written == after.written,
                 "it writes to standard output: \"" + text_since(before.written) + "\"");
}

}  // namespace tenon::check
