// Row 12: the reader csv over 100 MB of numbers of six digits: opening the file, and one pass in minibatches of 256.
// The loss is the sum of the first column. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

namespace {

constexpr int kColumns = 13;
constexpr size_t kBytes = 100'000'000;

std::string make_text() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::string text = "x0,x1,x2,x3,x4,x5,x6,x7,x8,x9,x10,x11,x12,label\n";
  char number[32];
  while (text.size() < kBytes) {
    for (int i = 0; i < kColumns; ++i)
      text.append(number, static_cast<size_t>(std::snprintf(number, sizeof number, "%.6g,", normal(random))));
    text += static_cast<char>('0' + random() % 10);
    text += '\n';
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    if (!std::filesystem::exists(arguments.folder + "/data.csv")) {
      const std::string text = make_text();
      bench::write(arguments.folder, "data.csv", text.data(), text.size());
    }
    const tenon::Host host = bench::host(arguments.threads);
    bench::Result result;
    const double began = bench::now();
    const tenon::Reader reader = host.reader("csv",
                                             {{"files", std::vector<std::string>{"data.csv"}},
                                              {"columns", std::vector<std::string>{"x = x0..x12:f32", "label:i32<10"}}},
                                             arguments.folder)
                                     .batch(256);
    while (true) {
      const std::vector<tenon::Array> slots = reader.next();
      if (slots.empty()) break;
      const auto* const values = static_cast<const float*>(slots[0].data);
      for (int64_t i = 0; i < slots[0].shape[0]; ++i) result.loss += static_cast<double>(values[i * kColumns]);
    }
    result.seconds = bench::now() - began;
    return result;
  });
}
