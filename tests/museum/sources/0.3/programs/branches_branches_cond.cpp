#include <cstdio>
#include <tenon/tenon.hpp>
#include <tenon/tenon_cond.hpp>

int main() try {
  const tenon::Host host;
  const tenon::Layer x = host.data({"x", TN_F32, {1}});

  // The absolute value: rows above 0 as they are, others times -1.
  const tenon::CondResult absolute = tenon::cond(
      x, [&](tenon::Branch& branch) { return tenon::Layers{branch.input(x)}; },
      [&](tenon::Branch& branch) {
        return tenon::Layers{host.layer("scale_shift", {branch.input(x)}, {{"scale", -1.0}})};
      });

  const tenon::Layer& result = absolute.results[0];
  tenon::MachineOptions options;
  options.max_samples = 4;
  const tenon::Machine machine = host.machine(host.parameters({result}, 1), {result}, options);
  const float values[] = {3, -2, 0, -1};
  machine.forward({{"x", {TN_F32, {4, 1}, values}}});
  const auto* found = static_cast<const float*>(machine.output(result).data);
  std::printf("%g %g %g %g\n", found[0], found[1], found[2], found[3]);
  return found[0] == 3 && found[1] == 2 && found[3] == 1 ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
