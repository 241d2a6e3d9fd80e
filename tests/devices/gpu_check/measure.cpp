// The part of scripts/gpu-check that calls the device itself, that of TENON_TEST_DEVICE: its properties, whether
// results repeat, and speeds. Prints a line for each row of the table, fields separated by tabs: subject, result, "ok"
// or "FAILED" or "-". Argument: the exponent of the largest operand in elements, 26 on a GPU; or "facts": what the
// device and its libraries are, without verdicts, after one kernel has run. Exit code 1: a row failed; 2: the device
// cannot be used, and the message says why. SPDX-License-Identifier: Apache-2.0
#include <tenon/device_host.h>

#include <chrono>
#include <cstdio>

#include "tests/devices/gpu_check/call.h"
#include "tests/devices/gpu_check/cublas.h"
#include "tests/devices/gpu_check/versions.h"

namespace tenon_tests {

namespace {

class Check {
 public:
  Check(DeviceUnderTest& device, int exponent) : device_(device), elements_(int64_t{1} << exponent) {}

  void facts() {
    tn_device_properties properties = {};
    properties.size = sizeof properties;
    require(device_, device_.type()->properties(device_.device(), device_.errors(), &properties), "properties");
    with_call(relu(), {1, elements_}, [](DeviceCall& call) {
      call.run();
      static_cast<void>(call.result());  // waits
    });
    const std::string memory = text(", %.1f GiB", static_cast<double>(properties.memory_bytes) / (1 << 30));
    const int32_t count = device_.type()->count(nullptr, nullptr);
    fact("GPU", properties.name + memory + (count > 1 ? ", the first of " + std::to_string(count) : ""));
    for (const auto& [library, version] : versions()) fact(library, version);
  }

  bool run() {
    copy();
    pointwise("relu", relu(), {1, elements_}, 2);
    pointwise("sum of two", sum_of_two(), {1, elements_}, 3);
    pointwise("adam", adam(), {1, elements_ / 4}, 7);
    pointwise("bias and relu", bias_relu(), {elements_ / 1024, 1024}, 2);
    pointwise("softmax of 1024", softmax(), {elements_ / 1024, 1024}, 2);
    pointwise("sums of columns", column_sums(), {elements_ / 1024, 1024}, 1);
    const int64_t side = std::max<int64_t>(64, static_cast<int64_t>(std::sqrt(static_cast<double>(elements_ / 4))));
    gemm(side, side, side);
    gemm(side / 8, side, side);
    return !failed_;
  }

 private:
  struct Grid {
    int64_t rows, columns;
  };

  void row(const std::string& subject, const std::string& result, const char* verdict) {
    std::printf("%s\t%s\t%s\n", subject.c_str(), result.c_str(), verdict);
    std::fflush(stdout);
    failed_ = failed_ || std::strcmp(verdict, "FAILED") == 0;
  }
  static void fact(const std::string& subject, const std::string& result) {
    std::printf("%s\t%s\n", subject.c_str(), result.c_str());
  }
  template <class... Values>
  static std::string text(const char* format, Values... values) {
    char out[200];
    std::snprintf(out, sizeof out, format, values...);
    return out;
  }

  void wait() { require(device_, device_.type()->stream_wait(device_.device(), device_.errors(), nullptr), "wait"); }
  // The least seconds of one of several runs, from enough in a row for a tenth of a second.
  template <class Function>
  double seconds_of(const Function& run) {
    using Clock = std::chrono::steady_clock;
    double best = 1e30;
    int count = 1;
    for (int round = 0; round < 6; ++round) {
      wait();
      const auto start = Clock::now();
      for (int k = 0; k < count; ++k) run();
      wait();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round == 0) {  // warms up, and tells how many are needed
        count = std::clamp(static_cast<int>(0.02 / seconds), 1, 1000);
      } else {
        best = std::min(best, seconds / count);
      }
    }
    return best;
  }

  void copy() {
    const DeviceMemory from(device_, static_cast<uint64_t>(elements_) * 4, 1), to(device_, from.bytes(), 2);
    const tn_copy copy = {sizeof copy, TN_COPY_ON_DEVICE, nullptr, to.data(), from.data(), from.bytes()};
    const double seconds =
        seconds_of([&] { require(device_, device_.type()->copy(device_.device(), device_.errors(), &copy), "copy"); });
    copy_rate_ = 2e-9 * static_cast<double>(from.bytes()) / seconds;
    row("copy on the device", text("%.0f GB/s read and written", copy_rate_),
        to.read() == from.read() ? "ok" : "FAILED");
  }

  // Two runs, and a recorded one where the device records, give the same bits.
  void check_repeats(const std::string& subject, DeviceCall& call) {
    call.run();
    const std::vector<uint8_t> first = call.result();
    call.run();
    if (call.result() != first) return row(subject + ": two runs", "other bits", "FAILED");
    const auto* const table = device_.table<tn_capture_table>(TN_CAPTURE);
    if (table == nullptr) return row(subject + ": two runs", "same bits; nothing is recorded", "ok");
    void *stream = nullptr, *graph = nullptr;
    const auto of = [&](tn_status status, const char* what) { require(device_, status, what); };
    of(device_.type()->stream_create(device_.device(), device_.errors(), &stream), "stream_create");
    call.run(stream);
    of(device_.type()->stream_wait(device_.device(), device_.errors(), stream), "stream_wait");
    of(table->begin(device_.device(), device_.errors(), stream), "begin");
    call.run(stream);
    of(table->end(device_.device(), device_.errors(), stream, &graph), "end");
    of(table->launch(device_.device(), device_.errors(), graph, stream), "launch");
    of(device_.type()->stream_wait(device_.device(), device_.errors(), stream), "stream_wait");
    const bool same = call.result() == first;
    table->destroy(device_.device(), graph);
    device_.type()->stream_destroy(device_.device(), stream);
    row(subject + ": two runs and a replay", same ? "same bits" : "other bits", same ? "ok" : "FAILED");
  }

  // A prepared program over the grid, for `use`.
  template <class Use>
  void with_call(const Program& program, Grid grid, const Use& use) {
    PointwiseCase c;
    c.program = program;
    c.rows = grid.rows;
    c.columns = grid.columns;
    c.rows_vary = grid.rows > 1;
    std::vector<int64_t> inputs, outputs;
    for (const auto& input : c.program.inputs)
      inputs.push_back(tenon::check::reference::elements(input.extent, c.rows, c.columns));
    for (size_t k = 0; k < c.program.outputs.size(); ++k)
      outputs.push_back(tenon::check::reference::elements(c.program.output_extent(k), c.rows, c.columns));
    const PointwiseSite site(c, 0);
    DeviceCall call(device_, [&](tn_prepared* prepared) { return prepare(device_, site.get(), prepared); }, inputs,
                    outputs, {0, c.rows, c.columns});
    use(call);
  }

  // passes: how many operands of the size of the grid are read and written.
  void pointwise(const std::string& name, const Program& program, Grid grid, int passes) {
    with_call(program, grid, [&](DeviceCall& call) {
      check_repeats(name, call);
      const double seconds = seconds_of([&] { call.run(); });
      const double rate = 4e-9 * passes * static_cast<double>(grid.rows * grid.columns) / seconds;
      row(name, text("%.0f GB/s, %.0f %% of the copy", rate, 100 * rate / copy_rate_), "-");
    });
  }

  void gemm(int64_t m, int64_t n, int64_t k) {
    const tn_gemm site = {
        sizeof site, TN_F32, tn_dim_constant(1), tn_dim_constant(m), tn_dim_constant(n), tn_dim_constant(k), 0, 0, 1};
    const auto* const table = device_.table<tn_gemm_table>(TN_GEMM);
    const auto prepare = [&](tn_prepared* prepared) {
      return table->prepare(device_.device(), device_.services(), device_.errors(), &site, prepared);
    };
    DeviceCall call(device_, prepare, {m * k, k * n}, {m * n}, {0, 1});
    const std::string name = text("product %lld x %lld x %lld", static_cast<long long>(m), static_cast<long long>(n),
                                  static_cast<long long>(k));
    check_repeats(name, call);
    const double work = 2e-12 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double rate = work / seconds_of([&] { call.run(); });
    const Cublas cublas(device_);
    if (!cublas.is_open()) return row(name, text("%.2f TFLOP/s; no cuBLAS beside it", rate), "-");
    const std::vector<uint8_t> own = call.result();
    const double peer =
        work / seconds_of([&] { cublas.product(m, n, k, call.operand(0), call.operand(1), call.operand(2)); });
    // Sums of k products of numbers below 1, in two orders.
    const double difference = largest_difference(own, call.result()), bound = 1e-6 * static_cast<double>(k);
    row(name, text("%.2f TFLOP/s, %.0f %% of cuBLAS", rate, 100 * rate / peer), difference <= bound ? "ok" : "FAILED");
  }

  // Of two lists of floats.
  static double largest_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    double largest = 0;
    for (size_t at = 0; at < a.size(); at += sizeof(float))
      largest = std::max(largest, std::fabs(read_element(TN_F32, &a[at]) - read_element(TN_F32, &b[at])));
    return largest;
  }

  static Program relu() {
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL);
    w.output(w.apply(TN_OP_MAX, x, w.constant(0)));
    return w.finish();
  }
  static Program sum_of_two() {
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL), y = w.input(TN_FULL);
    w.output(w.apply(TN_OP_ADD, x, y));
    return w.finish();
  }
  static Program bias_relu() {
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL), bias = w.input(TN_PER_COLUMN);
    w.output(w.apply(TN_OP_MAX, w.apply(TN_OP_ADD, x, bias), w.constant(0)));
    return w.finish();
  }
  static Program softmax() {
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL);
    const int32_t power = w.apply(TN_OP_EXP, w.apply(TN_OP_SUB, x, w.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW)));
    w.output(w.apply(TN_OP_DIV, power, w.reduce(TN_OP_REDUCE_SUM, power, TN_PER_ROW)));
    return w.finish();
  }
  static Program column_sums() {
    ProgramWriter w;
    w.output(w.reduce(TN_OP_REDUCE_SUM, w.input(TN_FULL), TN_PER_COLUMN));
    return w.finish();
  }
  // Reads a parameter, its gradient and two moments; writes all but the gradient.
  static Program adam() {
    ProgramWriter w;
    const int32_t p = w.input(TN_FULL), g = w.input(TN_FULL), m = w.input(TN_FULL), v = w.input(TN_FULL);
    const auto mix = [&](int32_t old, int32_t fresh, double keep) {
      return w.apply(TN_OP_ADD, w.apply(TN_OP_MUL, old, w.constant(keep)),
                     w.apply(TN_OP_MUL, fresh, w.constant(1 - keep)));
    };
    const int32_t mean = mix(m, g, 0.9), square = mix(w.apply(TN_OP_ABS, v), w.apply(TN_OP_MUL, g, g), 0.999);
    const int32_t root = w.apply(TN_OP_ADD, w.apply(TN_OP_SQRT, square), w.constant(1e-8));
    w.output(w.apply(TN_OP_SUB, p, w.apply(TN_OP_MUL, w.constant(1e-3), w.apply(TN_OP_DIV, mean, root))));
    w.output(mean);
    w.output(square);
    return w.finish();
  }

  DeviceUnderTest& device_;
  const int64_t elements_;
  double copy_rate_ = 1;
  bool failed_ = false;
};

}  // namespace

}  // namespace tenon_tests

int main(int count, char** arguments) {
  const bool facts = count > 1 && std::strcmp(arguments[1], "facts") == 0;
  try {
    tenon_tests::DeviceUnderTest device;
    if (facts) {
      tenon_tests::Check(device, 10).facts();
      return 0;
    }
    return tenon_tests::Check(device, count > 1 ? std::atoi(arguments[1]) : 26).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return facts ? 2 : 1;
  }
}
