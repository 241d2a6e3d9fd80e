// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>

#include "lines.h"

namespace tenon::files {

Vocabulary::Vocabulary(const std::string& path, const tn::ReaderOpen& open) {
  Lines lines(path, open);
  lines.for_each([&](const Line& line) {
    const std::string text = quoted(line.text);
    if (!add(line.text)) throw lines.failure(line, text + " is there twice");
    return true;
  });
}

bool Vocabulary::add(std::string_view text) {
  if (numbers_.find(text) != numbers_.end()) return false;
  if (texts_.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw tn::Failure(TN_UNSUPPORTED, "", "a vocabulary of more than 2147483647 entries");
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), static_cast<int32_t>(texts_.size() - 1));
  return true;
}

void Vocabulary::write(const std::string& path) const {
  const std::string pending = path + ".tmp" + std::to_string(::getpid());
  std::ofstream file(pending, std::ios::binary);
  if (!file) throw tn::Failure(TN_IO, path, "cannot be written");
  for (const std::string& text : texts_) {
    if (text.find_first_of("\r\n") != std::string::npos)
      throw tn::Failure(TN_UNSUPPORTED, path, "the entry " + quoted(text) + " has a line end in it");
    file << text << '\n';
  }
  file.close();
  if (!file || std::rename(pending.c_str(), path.c_str()) != 0) {
    std::remove(pending.c_str());
    throw tn::Failure(TN_IO, path, "cannot be written");
  }
}

}  // namespace tenon::files
