// The reader csv over 100 MB of numbers: opening the file and one pass in minibatches of 256. One run, one line of
// JSON; benchmarks/compare runs it beside the peer. The limit is a loop that looks for line ends alone.
// SPDX-License-Identifier: Apache-2.0
//
//   bench_readers THREADS FOLDER [order|shuffle]     FOLDER receives data.csv, which the peer reads too
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>
#include <tenon/tenon.hpp>

#include "../limits.h"

namespace {

constexpr int kColumns = 13;
constexpr size_t kBytes = 100'000'000;

// Numbers of six digits, as measurements have them, and a class at the end of each line.
void write_data(const std::string& path) {
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
  std::ofstream(path, std::ios::binary) << text;
}

// Seconds to find every line end of a text that is in memory; the best of five tries.
double search_seconds(const std::string& text) {
  double best = 1e30;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double began = bench::now();
    size_t lines = 0;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end; ++lines) {
      const void* const found = std::memchr(at, '\n', static_cast<size_t>(end - at));
      at = found == nullptr ? end : static_cast<const char*>(found) + 1;
    }
    if (lines == 0) return 0;
    best = std::min(best, bench::now() - began);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4) return std::fprintf(stderr, "usage: bench_readers THREADS FOLDER [order|shuffle]\n"), 64;
  const std::string folder = argv[2], path = folder + "/data.csv";
  const bool shuffled = argc == 4 && std::strcmp(argv[3], "shuffle") == 0;
  if (!std::ifstream(path)) write_data(path);
  const tenon::Host host(tenon::HostOptions{std::atoi(argv[1]), {}, nullptr, {}, TN_CHECK_OFF});
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::clock_t cpu_began = std::clock();
  const double began = bench::now();
  tenon::Reader reader = host.reader("csv",
                                     {{"files", std::vector<std::string>{"data.csv"}},
                                      {"columns", std::vector<std::string>{"x = x0..x12:f32", "label:i32<10"}}},
                                     folder);
  const double opened = bench::now();
  if (shuffled) reader = std::move(reader).shuffle(1);
  reader = std::move(reader).batch(256);
  int64_t samples = 0;
  double sum = 0;
  while (true) {
    const std::vector<tenon::Array> slots = reader.next();
    if (slots.empty()) break;
    samples += slots[0].shape[0];
    sum += static_cast<double>(*static_cast<const float*>(slots[0].data));
  }
  const double ended = bench::now();
  const double cpu = static_cast<double>(std::clock() - cpu_began) / CLOCKS_PER_SEC;  // of all threads
  const double megabytes = static_cast<double>(text.size()) * 1e-6;
  std::printf(
      "{\"unit\": \"ms\", \"value\": %.3f, \"limit\": %.3f, \"open_ms\": %.3f, \"MB_per_s\": %.1f, \"MB_per_cpu_s\": "
      "%.1f, \"samples\": %lld, "
      "\"sum\": %.3f}\n",
      1e3 * (ended - began), 1e3 * search_seconds(text), 1e3 * (opened - began), megabytes / (ended - began),
      megabytes / cpu, static_cast<long long>(samples), sum);
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "bench_readers: %s\n", error.what());
  return 1;
}
