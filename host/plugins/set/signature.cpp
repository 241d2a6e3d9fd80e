// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/signature.h"

#include <fcntl.h>
#include <sodium/crypto_sign_ed25519.h>
#include <sodium/utils.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/not_copied.h"
#include "base/sha256.h"
#include "core/error.h"
#include "host/plugins/set/hex.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

constexpr size_t kSeed = crypto_sign_ed25519_SEEDBYTES, kPublic = crypto_sign_ed25519_PUBLICKEYBYTES,
                 kSecret = crypto_sign_ed25519_SECRETKEYBYTES, kSignature = crypto_sign_ed25519_BYTES;

// First lines of the files, so that no file is taken for another.
constexpr std::string_view kSecretTitle = "tenon secret key 1", kPublicTitle = "tenon public key 1",
                           kSignatureTitle = "tenon plugin signature 1";

const unsigned char* raw(const std::string& bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

// A text whose memory is wiped.
struct Secret : base::NotCopied {
  std::string bytes;
  explicit Secret(size_t size) : bytes(size, '\0') {}
  explicit Secret(std::string given) : bytes(std::move(given)) {}
  ~Secret() { sodium_memzero(bytes.data(), bytes.size()); }
};

// What is signed: the digest, after words that keep this key's signatures for other purposes apart.
std::string message_of(const std::string& sha256) {
  return std::string("tenon plugin sha256 1\0", 22) + bytes_of(sha256);
}

// Returns the bytes of a file of a title and a line of digits, "" if it is not one.
std::string read_digits(InputFile& file, std::string_view title, size_t bytes) {
  const size_t length = title.size() + 1 + 2 * bytes + 1;
  if (file.size() != length) return "";
  Secret text(length);
  file.read(0, text.bytes.data(), length);
  const std::string_view digits = std::string_view(text.bytes).substr(title.size() + 1, 2 * bytes);
  const bool fits = text.bytes.starts_with(title) && text.bytes[title.size()] == '\n' && text.bytes.back() == '\n';
  return fits && is_hex(digits) ? bytes_of(digits) : "";
}

std::string lines_of(std::string_view title, const std::string& bytes) {
  return text(title, "\n", hex_of(bytes), "\n");
}

[[noreturn]] void fail_system(const fs::path& path) {
  fail(errno == ENOENT ? TN_NOT_FOUND : TN_IO, SubjectName{path.string()}, path.string(), ": ",
       std::generic_category().message(errno));
}

// Writes a file that did not exist.
void create(const fs::path& path, const std::string& bytes, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0 && errno == EEXIST)
    fail(TN_INVALID, SubjectName{path.string()}, path.string(), " exists; a key is never overwritten");
  if (file < 0) fail_system(path);
  const bool whole = base::write_all(file, bytes) && ::fsync(file) == 0;
  const int failure = errno;
  ::close(file);
  if (whole) return;
  ::unlink(path.c_str());
  errno = failure;
  fail_system(path);
}

std::string read_secret_key(const fs::path& path, FileSystem& files) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) fail_system(path);
  std::string key = read_digits(*files.open(path), kSecretTitle, kSecret);
  if (key.empty())
    fail(TN_BAD_CONFIG, SubjectName{path.string()}, path.string(), " is not a secret key of 'tenon plugins key'");
  if ((found.st_mode & 077u) != 0)
    fail(TN_REFUSED, SubjectName{path.string()}, path.string(),
         " is a secret key that others than its owner may read or write; correct that with chmod 600, and consider it "
         "known to them");
  return key;
}

}  // namespace

fs::path signature_file(const fs::path& file) { return file.string() + ".sig"; }

void create_key(const fs::path& secret, const fs::path& public_key) {
  Secret seed(kSeed), key(kSecret);
  std::string open(kPublic, '\0');
  for (size_t done = 0; done < kSeed;) {
    const ssize_t got = getrandom(seed.bytes.data() + done, kSeed - done, 0);
    if (got < 0 && errno != EINTR) fail(TN_IO, "no random numbers: ", std::generic_category().message(errno));
    if (got > 0) done += static_cast<size_t>(got);
  }
  crypto_sign_ed25519_seed_keypair(raw(open), raw(key.bytes), raw(seed.bytes));
  const Secret lines(lines_of(kSecretTitle, key.bytes));
  std::error_code error;
  if (fs::exists(public_key, error))
    fail(TN_INVALID, SubjectName{public_key.string()}, public_key.string(), " exists; a key is never overwritten");
  create(secret, lines.bytes, 0600);
  try {
    create(public_key, lines_of(kPublicTitle, open), 0644);
  } catch (const Error&) {
    ::unlink(secret.c_str());
    throw;
  }
}

std::string read_public_key(const fs::path& file, FileSystem& files) {
  std::string key = read_digits(*files.open(file), kPublicTitle, kPublic);
  if (key.empty())
    fail(TN_BAD_CONFIG, SubjectName{file.string()}, file.string(), " is not a public key of 'tenon plugins key'");
  return key;
}

void sign(const fs::path& file, const fs::path& secret, FileSystem& files) {
  const Secret key(read_secret_key(secret, files));
  const std::string message = message_of(digest_of(*files.open(file)));
  std::string signature(kSignature, '\0');
  crypto_sign_ed25519_detached(raw(signature), nullptr, raw(message), message.size(), raw(key.bytes));
  const std::string lines = lines_of(kSignatureTitle, signature);
  const auto output = files.replace(signature_file(file));
  output->write(lines.data(), lines.size());
  output->commit();
}

std::string read_signature(const fs::path& file, FileSystem& files) {
  const fs::path path = signature_file(file);
  std::unique_ptr<InputFile> opened;
  try {
    opened = files.open(path);
  } catch (const Error& error) {
    if (error.code() != TN_NOT_FOUND) throw;
    fail(TN_REFUSED, "it is not signed: there is no file ", path.string());
  }
  std::string signature = read_digits(*opened, kSignatureTitle, kSignature);
  if (signature.empty()) fail(TN_REFUSED, path.string(), " is not a signature of 'tenon plugins sign'");
  return signature;
}

bool is_signed(const std::string& sha256, const std::string& signature, const std::string& public_key) {
  const std::string message = message_of(sha256);
  return signature.size() == kSignature && public_key.size() == kPublic &&
         crypto_sign_ed25519_verify_detached(raw(signature), raw(message), message.size(), raw(public_key)) == 0;
}

std::string digest_of(InputFile& file) {
  constexpr uint64_t kPart = uint64_t{1} << 20;
  base::Sha256 hash;
  std::vector<char> part(std::min(kPart, file.size()));
  for (uint64_t at = 0; at < file.size(); at += part.size()) {
    const uint64_t bytes = std::min<uint64_t>(part.size(), file.size() - at);
    file.read(at, part.data(), bytes);
    hash.update(part.data(), bytes);
  }
  return hash.finish();
}

}  // namespace tenon::host
