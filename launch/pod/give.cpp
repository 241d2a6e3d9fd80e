// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "base/files.h"
#include "launch/pod/handover.h"
#include "launch/pod/image.h"
#include "launch/pod/pod.h"

namespace tenon::launch {

namespace {

constexpr int kHoldMs = 2000;
constexpr size_t kBlock = 1 << 20;

// Writes to standard output, and has the digest of it.
class Giving {
 public:
  Giving() {
    if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be used on this machine");
    crypto_generichash_init(&state_, nullptr, 0, crypto_generichash_BYTES);
  }
  void write(const std::string& bytes) {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    if (!base::write_all(STDOUT_FILENO, bytes)) throw cli::Failure(cli::kIo, "nobody reads the results");
  }
  // path: a file of so many bytes.
  void write_file(const std::string& path, uint64_t bytes) {
    std::ifstream file(path, std::ios::binary);
    std::string part(kBlock, '\0');
    for (uint64_t left = bytes; left > 0; left -= part.size()) {
      part.resize(std::min<uint64_t>(left, kBlock));
      if (!file.read(part.data(), static_cast<std::streamsize>(part.size())))
        throw cli::Failure(cli::kIo, "cannot read \"" + path + "\"");
      write(part);
    }
  }
  void finish() {
    std::string digest(crypto_generichash_BYTES, '\0');
    crypto_generichash_final(&state_, reinterpret_cast<unsigned char*>(digest.data()), digest.size());
    if (!base::write_all(STDOUT_FILENO, digest)) throw cli::Failure(cli::kIo, "nobody reads the results");
  }

 private:
  crypto_generichash_state state_;
};

// Waits for input or the time. Returns what has come; empty at its end.
std::optional<std::string> read_input(int milliseconds) {
  pollfd wait = {STDIN_FILENO, POLLIN, 0};
  if (poll(&wait, 1, milliseconds) <= 0) return std::nullopt;
  char part[256];
  const ssize_t got = base::uninterrupted([&] { return ::read(STDIN_FILENO, part, sizeof part); });
  return std::string(part, got > 0 ? static_cast<size_t>(got) : 0);
}

}  // namespace

int run_give() {
  signal(SIGPIPE, SIG_IGN);
  const Handover handover;
  handover.hold();
  Giving giving;
  giving.write(nlohmann::json{{"image", image_here()}}.dump() + "\n");
  std::optional<nlohmann::json> answer;
  while (handover.hold(), !(answer = handover.read()))
    if (const auto input = read_input(kHoldMs); input && input->empty()) return cli::kIo;  // who asked has ended
  giving.write(answer->dump() + "\n");
  for (const nlohmann::json& file : answer->at("files")) giving.write_file(file.at("path"), file.at("bytes"));
  giving.finish();
  for (std::string said; said.find("taken") == std::string::npos; handover.hold())
    if (const auto input = read_input(kHoldMs)) {
      if (input->empty()) return cli::kIo;
      said += *input;
    }
  handover.take();
  return cli::kDone;
}

}  // namespace tenon::launch
