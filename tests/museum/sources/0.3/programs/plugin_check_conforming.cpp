#include <cstdio>
#include <cstdlib>
#include <string>
#include <tenon/check.hpp>

int main() {
  tenon::check::Options options;
  options.file = std::string(std::getenv("HOME")) + "/tenon/lib/tenon/plugins/layers/swish.so";
  options.seed = 3;
  const tenon::check::Report report = tenon::check::run(options);
  for (const tenon::check::Result& result : report.results)
    if (result.outcome == tenon::check::Outcome::kFailed)
      std::printf("%s %s: %s\n", result.component.c_str(), result.check.c_str(), result.message.c_str());
  return report.count(tenon::check::Outcome::kFailed) == 0 ? 0 : 1;
}
