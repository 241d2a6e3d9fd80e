// SPDX-License-Identifier: Apache-2.0
#include "host/comm/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/not_copied.h"
#include "base/whole_number.h"
#include "core/error.h"

namespace tenon::host {

using namespace core;

namespace {

constexpr size_t kLeast = 16, kMost = 4096;

[[noreturn]] void fail_io(const std::string& source, int error) {
  fail(TN_IO, SubjectName{source}, "secret \"", source, "\": ", std::generic_category().message(error));
}

class Descriptor : base::NotCopied {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { ::close(number_); }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

int open_source(const std::string& source) {
  if (source.rfind("fd:", 0) == 0) {
    const int number = base::whole_number<int>(std::string_view(source).substr(3)).value_or(-1);
    if (number < 0)
      fail(TN_INVALID, SubjectName{source}, "secret \"", source, "\": expected fd: and the number of a descriptor");
    if (::fcntl(number, F_GETFD) < 0) fail_io(source, errno);
    return number;
  }
  const int file = ::open(source.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_io(source, errno);
  struct stat status = {};
  if (::fstat(file, &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return file;
  ::close(file);
  fail(TN_REFUSED, SubjectName{source}, "secret \"", source,
       "\": others than its owner may use the file; chmod 600 it");
}

}  // namespace

std::vector<uint8_t> read_secret(const std::string& source) {
  if (source.empty()) return {};
  const Descriptor file(open_source(source));
  std::vector<uint8_t> secret(kMost + 1);
  size_t bytes = 0;
  while (bytes < secret.size()) {
    const ssize_t part = ::read(file.number(), secret.data() + bytes, secret.size() - bytes);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) fail_io(source, errno);
    if (part == 0) break;
    bytes += static_cast<size_t>(part);
  }
  if (bytes < kLeast || bytes > kMost)
    fail(TN_BAD_DATA, SubjectName{source}, "secret \"", source, "\" has ", bytes > kMost ? "more than " : "",
         bytes > kMost ? kMost : bytes, " bytes; expected ", kLeast, " to ", kMost);
  secret.resize(bytes);
  return secret;
}

}  // namespace tenon::host
