// Reads files in an application whose locale has a decimal comma:
//   decimal_comma LOCALE PLUGINS {TYPE ATTRIBUTE FILE SLOT NUMBER}...
// where ATTRIBUTE of a reader of type TYPE is the file, and the first number of slot SLOT, from 0, must be NUMBER,
// written with a comma. SPDX-License-Identifier: Apache-2.0
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

// `files` is that of example.visitors.
tenon::Attributes attributes_of(const std::string& attribute, const std::string& file) {
  if (attribute != "files") return {{attribute, file}};
  return {{"files", std::vector<std::string>{file}}, {"items", 6}, {"width", 8}};
}

double first_of(const tenon::Host& host, char** given) {
  const tenon::Reader reader = host.reader(given[0], attributes_of(given[1], given[2])).batch(1);
  const std::vector<tenon::Array> arrays = reader.next();
  return static_cast<const float*>(arrays.at(std::stoul(given[3])).data)[0];
}

}  // namespace

int main(int count, char** given) try {
  if (std::setlocale(LC_ALL, given[1]) == nullptr || std::string(std::localeconv()->decimal_point) != ",") {
    std::fprintf(stderr, "no locale %s with a decimal comma\n", given[1]);
    return 1;
  }
  std::locale::global(std::locale(given[1]));
  tenon::HostOptions options;
  options.threads = 1;
  options.plugin_paths = {given[2]};
  const tenon::Host host(options);
  for (int i = 3; i + 5 <= count; i += 5) {
    const double expected = std::strtod(given[i + 4], nullptr), found = first_of(host, given + i);
    if (found == expected) continue;
    std::fprintf(stderr, "%s reads %g; expected %g\n", given[i], found, expected);
    return 1;
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
