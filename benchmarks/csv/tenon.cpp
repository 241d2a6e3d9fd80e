// Row 12: the reader csv over 100 MB, opening the file and one pass in minibatches of 256: numbers of six digits, or,
// in the mode "integers", images of 784 bytes with their classes. The loss is the sum of one column in the middle.
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

namespace {

std::string header(int columns) {
  std::string text;
  for (int i = 0; i < columns; ++i) text += "x" + std::to_string(i) + ",";
  return text + "label\n";
}

std::string make_numbers(size_t bytes) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::string text = header(13);
  char number[32];
  while (text.size() < bytes) {
    for (int i = 0; i < 13; ++i)
      text.append(number, static_cast<size_t>(std::snprintf(number, sizeof number, "%.6g,", normal(random))));
    text += static_cast<char>('0' + random() % 10);
    text += '\n';
  }
  return text;
}

// Images like those of handwritten digits: four of five points are 0, in runs.
std::string make_images(size_t bytes) {
  std::mt19937 random(1);
  std::string text = header(784);
  while (text.size() < bytes) {
    bool ink = true;
    for (uint64_t i = 0, left = 0; i < 784; ++i, --left) {
      if (left == 0) {
        ink = !ink;
        left = 1 + random() % (ink ? 12 : 48);
      }
      text += std::to_string(ink ? random() % 256 : 0) + ",";
    }
    text += static_cast<char>('0' + random() % 10);
    text += '\n';
  }
  return text;
}

template <typename T>
double sum_of(const tenon::Array& rows, int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < rows.shape[0]; ++i)
    sum += static_cast<double>(static_cast<const T*>(rows.data)[i * rows.shape[1] + column]);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const bool integers = arguments.mode == "integers";
    const auto bytes = static_cast<size_t>(arguments.size(100'000'000, 200'000));
    if (!std::filesystem::exists(arguments.folder + "/data.csv")) {
      const std::string text = integers ? make_images(bytes) : make_numbers(bytes);
      bench::write(arguments.folder, "data.csv", text.data(), text.size());
    }
    const tenon::Host host = bench::host(arguments.threads);
    bench::Result result;
    const std::string slot = integers ? "x = x0..x783:u8" : "x = x0..x12:f32";
    const auto read = [&] {
      const tenon::Reader reader = host.reader("csv",
                                               {{"files", std::vector<std::string>{"data.csv"}},
                                                {"columns", std::vector<std::string>{slot, "label:i32<10"}}},
                                               arguments.folder)
                                       .batch(256);
      while (true) {
        const std::vector<tenon::Array> slots = reader.next();
        if (slots.empty()) break;
        result.loss += integers ? sum_of<uint8_t>(slots[0], 392) : sum_of<float>(slots[0], 6);
      }
    };
    if (arguments.calls > 0) return bench::count_calls(arguments, read);
    const double began = bench::now();
    read();
    result.seconds = bench::now() - began;
    return result;
  });
}
