// SPDX-License-Identifier: Apache-2.0
#include "launch/pod/handover.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace tenon::launch {

namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& text) {
  const fs::path next = path.string() + ".new";
  std::ofstream file(next, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write \"" + path.string() + "\"");
  fs::rename(next, path);
}

}  // namespace

Handover::Handover() : folder_(fs::temp_directory_path() / "tenon-pod") { fs::create_directories(folder_); }

void Handover::write(const nlohmann::json& results) const { write_file(folder_ / "results", results.dump()); }

std::optional<nlohmann::json> Handover::read() const {
  std::ifstream file(folder_ / "results", std::ios::binary);
  if (!file) return std::nullopt;
  return nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
}

void Handover::hold() const { write_file(folder_ / "held", ""); }

std::optional<std::chrono::seconds> Handover::held() const {
  std::error_code error;
  const auto time = fs::last_write_time(folder_ / "held", error);
  if (error) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - time);
}

void Handover::take() const { write_file(folder_ / "taken", ""); }

bool Handover::are_taken() const { return fs::exists(folder_ / "taken"); }

}  // namespace tenon::launch
