// SPDX-License-Identifier: Apache-2.0
#include "base/processor.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

namespace tenon::base {

namespace {

// Of x86; then those of arm, whose list "Features" is short.
constexpr std::string_view kInstructions[] = {"avx", "amx",  "bmi",   "f16c", "fma",
                                              "sse", "ssse", "asimd", "sve",  "bf16"};

bool decides(std::string_view flag) {
  return std::any_of(std::begin(kInstructions), std::end(kInstructions),
                     [&](std::string_view begin) { return flag.starts_with(begin); });
}

}  // namespace

std::string processor_text(const std::filesystem::path& file) {
  std::ifstream lines(file);
  std::string vendor;
  std::set<std::string> flags;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    std::istringstream words(line.substr(std::min(line.find(':') + 1, line.size())));
    if (line.starts_with("vendor_id") || line.starts_with("CPU implementer")) words >> vendor;
    if (line.starts_with("flags") || line.starts_with("Features"))
      for (std::string flag; words >> flag;)
        if (decides(flag)) flags.insert(flag);
  }
  std::string text = vendor;
  for (const std::string& flag : flags) text += ' ' + flag;
  return text;
}

}  // namespace tenon::base
