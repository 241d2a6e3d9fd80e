// Makes a file of standard input. SPDX-License-Identifier: Apache-2.0
#include "standard_input.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <tenon/base.hpp>
#include <vector>

#include "file.h"
#include "temporary_file.h"

namespace tenon::files {

namespace {

constexpr const char* kPath = "/dev/stdin";

[[noreturn]] void fail(const char* what, int error) {
  throw tn::Failure(TN_IO, kPath, std::string(what) + ": " + std::generic_category().message(error));
}

// Waits until standard input has bytes, or an end. Looks at *cancel ten times a second.
void wait_for_bytes(const volatile int32_t* cancel) {
  constexpr int kMilliseconds = 100;
  pollfd standard = {STDIN_FILENO, POLLIN, 0};
  for (int ready = 0; ready <= 0;) {
    check_cancel(cancel, kPath);
    ready = ::poll(&standard, 1, kMilliseconds);
    if (ready < 0 && errno != EINTR) fail("cannot be read", errno);
  }
}

}  // namespace

std::string standard_input(uint64_t most, const volatile int32_t* cancel) {
  struct stat status = {};
  if (::fstat(STDIN_FILENO, &status) != 0) fail("cannot be read", errno);
  const bool begins = S_ISREG(status.st_mode) && ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
  if (begins && ::access(kPath, R_OK) == 0) return kPath;
  const TemporaryFile copy(kPath);
  std::vector<char> buffer(size_t{1} << 18);
  uint64_t bytes = 0;
  while (true) {
    wait_for_bytes(cancel);
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) fail("cannot be read", errno);
    if (count == 0) break;
    bytes += static_cast<uint64_t>(count);
    if (bytes > most)
      throw tn::Failure(TN_BAD_DATA, kPath,
                        "has more than " + std::to_string(most) + " bytes, the bound of most_inflated_bytes");
    copy.append(buffer.data(), static_cast<size_t>(count));
  }
  copy.become_standard_input();
  return kPath;
}

}  // namespace tenon::files
