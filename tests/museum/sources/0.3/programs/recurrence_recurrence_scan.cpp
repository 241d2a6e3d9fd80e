#include <cstdio>
#include <tenon/tenon.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>

int main() try {
  const tenon::Host host;
  tenon::DataOptions rows;
  rows.name = "x", rows.shape = {2}, rows.storage = TN_RAGGED;
  const tenon::Layer x = host.data(rows);

  // A running mean: each step moves the state a tenth of the way to the row.
  const tenon::ScanResult means = tenon::scan({x}, [&](tenon::Step& step) {
    const tenon::Layer state = step.memory({2});  // begins with zeros
    const tenon::Layer kept = host.layer("scale_shift", {state}, {{"scale", 0.9}});
    const tenon::Layer added = host.layer("scale_shift", {step.input(0)}, {{"scale", 0.1}});
    const tenon::Layer mean = host.layer("add", {kept, added});
    step.next(state, mean);
    return tenon::Layers{mean};
  });

  const tenon::Layers outputs = {means.results[0], means.last[0]};  // [rows, 2] and [samples, 2]
  tenon::MachineOptions options;
  options.max_samples = 2;
  const tenon::Machine machine = host.machine(host.parameters(outputs, 1), outputs, options);
  const float values[] = {1, 0, 1, 0, 5, 5};  // a sequence of two rows, and one of one
  const int64_t offsets[] = {0, 2, 3};
  machine.forward({{"x", tenon::Array::sequences(TN_F32, {3, 2}, values, 2, offsets)}});
  const auto* last = static_cast<const float*>(machine.output(outputs[1]).data);
  std::printf("%.2f %.2f\n", last[0], last[2]);
  return last[0] > 0.18F && last[0] < 0.2F && last[2] == 0.5F ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
