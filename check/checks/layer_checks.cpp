// SPDX-License-Identifier: Apache-2.0
#include "check/checks/layer_checks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string_view>
#include <tenon/tenon_updater.hpp>

#include "base/temporary.h"
#include "check/bench/layer_bench.h"
#include "check/checks/each_case.h"
#include "check/checks/layer_gradients.h"
#include "check/checks/native_checks.h"
#include "check/checks/other_hosts.h"
#include "check/checks/refusing.h"
#include "check/definitions/parts.h"

namespace tenon::check {

namespace {

std::string at(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " elements against " + std::to_string(b.size());
  for (size_t i = 0; i < a.size(); ++i)
    if (!identical({a[i]}, {b[i]}))
      return "element " + std::to_string(i) + " is " + shown(a[i]) + " against " + shown(b[i]);
  return "";
}

// Throws Fault unless both steps have the same bits.
void expect_same(Context& context, const Step& a, const Step& b, const std::string& what) {
  for (size_t k = 0; k < a.outputs.size(); ++k)
    context.expect(identical(a.outputs[k], b.outputs.at(k)),
                   "output " + std::to_string(k) + " " + what + ": " + at(a.outputs[k], b.outputs[k]));
  for (const auto& [name, gradient] : a.gradients)
    context.expect(identical(gradient, b.gradients.at(name)),
                   "the gradient of " + name + " " + what + ": " + at(gradient, b.gradients.at(name)));
}

// ---- the checks

void find_layer_cases(Context& context) { context.count(static_cast<int64_t>(context.cases().size())); }

// A description with the ragged dimensions, "rows17", numbered in the order in which it names them: those whose rows a
// kernel counts are new ones in every layer.
std::string numbered(const std::string& text) {
  static constexpr std::string_view kRaggedName = "rows", kDigits = "0123456789";
  std::string result;
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t digits = at + kRaggedName.size(), end = text.find_first_not_of(kDigits, digits);
    if (text.compare(at, kRaggedName.size(), kRaggedName) != 0 || end == digits || end == std::string::npos) {
      result += text[at++];
      continue;
    }
    const std::string name = text.substr(digits, end - digits);
    const auto name_place = std::find(names.begin(), names.end(), name);
    result += std::string(kRaggedName) + std::to_string(name_place - names.begin());
    if (name_place == names.end()) names.push_back(name);
    at = end;
  }
  return result;
}

void check_plan(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    std::vector<std::string> described;
    for (int times = 0; times < 2; ++times) {
      const Bench bench = bench_of(context, layer_case);
      described.push_back(numbered(bench.layer().describe()) + bench.parameters().describe());
      const Bench again(bench.host(), context.subject().type, layer_case, context.subject().seed);
      described.push_back(numbered(again.layer().describe()) + again.parameters().describe());
    }
    for (const std::string& text : described)
      context.expect(text == described[0], "plan gives other shapes or parameters for the same arguments");
  });
}

void check_step(Context& context) {
  each_case(context, CaseKind::kAttributes, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case);
    for (const tn_dtype compute : {TN_F32, TN_F64})
      for (const int64_t samples : {Bench::kSamples, int64_t{1}, int64_t{3}}) {
        if (compute == TN_F64 && !offers_fp64(bench)) continue;
        const Step step = bench.step(compute, {0, samples});
        for (size_t k = 0; k < step.outputs.size(); ++k)
          for (const double value : step.outputs[k])
            context.expect(std::isfinite(value), "output " + std::to_string(k) + " is not finite");
        for (const auto& [name, gradient] : step.gradients)
          for (const double value : gradient)
            context.expect(!layer_case.differentiable || std::isfinite(value),
                           "the gradient of " + name + " is not finite");
      }
  });
}

void check_layer_process(Context& context) {
  (void)context.cases();
  (void)context.host(2, false);
  each_case(context, [&](const LayerCase& layer_case) {
    context.expect_unchanged([&] { (void)bench_of(context, layer_case, {2}).step(TN_F32, Bench::all()); });
  });
}

void check_operands(Context& context) {
  each_case(context, CaseKind::kLarge, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case, {2, true});
    for (const int64_t samples : {Bench::kSamples, int64_t{1}}) {
      context.count(2);
      (void)bench.step(TN_F32, {0, samples});
      if (offers_fp64(bench)) (void)bench.step(TN_F64, {0, samples});
    }
  });
}

void check_repeat(Context& context) {
  const Host second = context.subject().host();
  each_case(context, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case);
    const Step first = bench.step(TN_F32, Bench::all());
    expect_same(context, first, bench.step(TN_F32, Bench::all()), "of a second machine differs");
    const Machine machine = bench.machine(TN_F32, true);
    for (int times = 0; times < 3; ++times) {
      bench.forward(machine, TN_F32, Bench::all());
      Step again;
      again.outputs = bench.read(machine);
      for (size_t k = 0; k < again.outputs.size(); ++k)
        context.expect(identical(first.outputs[k], again.outputs[k]),
                       "output " + std::to_string(k) + " differs when the same minibatch is computed again: " +
                           at(first.outputs[k], again.outputs[k]));
    }
    const Bench other(second, context.subject().type, layer_case, context.subject().seed);
    expect_same(context, first, other.step(TN_F32, Bench::all()), "of a second host differs");
  });
}

// A host that finds a copy of the plugin's file, in a folder of its own: a library with other static variables.
Host host_of_copy(const Context& context, const base::TemporaryFolder& folder) {
  const std::filesystem::path file = context.subject().file;
  std::filesystem::copy_file(file, folder.file(file.filename().string()));
  HostOptions options;
  options.threads = 1;
  options.plugin_paths = {folder.path().string(), context.subject().others};
  options.check = TN_CHECK_OFF;
  Host host(options);
  host.add_plugin(&parts());
  return host;
}

void check_hosts(Context& context) {
  if (!context.subject().device.empty()) throw Skip("a device has no attributes of layers");
  const LayerCase& first = context.cases().front();
  const Bench earlier = bench_of(context, first);  // lives beside those that follow
  const Machine machine = earlier.machine(TN_F32, true);
  constexpr size_t kMost = 3;
  size_t others = 0;
  for (auto layer_case = context.cases().rbegin(); layer_case != context.cases().rend() && others < kMost;
       ++layer_case) {
    if (layer_case->attributes == first.attributes || layer_case->kind == CaseKind::kLarge ||
        !layer_case->chain.empty())
      continue;
    ++others;
    const base::TemporaryFolder folder;
    const Host alone = host_of_copy(context, folder);
    Step expected;
    try {
      expected = Bench(alone, context.subject().type, *layer_case, context.subject().seed).step(TN_F32, Bench::all());
    } catch (const Error& error) {
      throw Skip(std::string("a copy of its file in another folder does not work: ") + error.what());
    }
    expect_same(context, bench_of(context, *layer_case).step(TN_F32, Bench::all()), expected,
                "of (" + layer_case->text() + ") differs after a host with (" + first.text() + ") has used the plugin");
  }
  if (others == 0) throw Skip("all cases have the same attributes");
}

void check_threads(Context& context) {
  const size_t most = context.subject().device.empty() ? 4 : SIZE_MAX;  // of a device each case is another primitive
  each_case(
      context, CaseKind::kLarge,
      [&](const LayerCase& layer_case) {
        const Step one = bench_of(context, layer_case).step(TN_F32, Bench::all());
        for (const int threads : {2, 3, 8})
          expect_same(context, one, bench_of(context, layer_case, {threads}).step(TN_F32, Bench::all()),
                      "of " + std::to_string(threads) + " threads differs from that of one");
      },
      most);
}

// The elements of an array of all samples that belong to samples [first, first + count), if its rows are those of an
// input or the samples themselves; else Skip.
Numbers part_of(const Bench& bench, const Array& array, const Part& part) {
  const Numbers values = numbers_of(array);
  const int64_t rows = array.shape.empty() ? -1 : array.shape[0];
  const auto cut = [&](int64_t begin, int64_t end) {
    const int64_t width = rows == 0 ? 0 : static_cast<int64_t>(values.size()) / rows;
    return Numbers(values.begin() + begin * width, values.begin() + end * width);
  };
  if (array.storage == TN_RAGGED && array.offsets[0] != nullptr) {
    int64_t begin = array.offsets[0][part.first], end = array.offsets[0][part.first + part.count];
    if (array.levels == 2) begin = array.offsets[1][begin], end = array.offsets[1][end];
    return cut(begin, end);
  }
  for (size_t i = 0; i < bench.layer_case().inputs.size(); ++i)
    if (!bench.layer_case().inputs[i].sequence.empty() && rows == bench.rows_before(i, Bench::kSamples) &&
        rows != Bench::kSamples)
      return cut(bench.rows_before(i, part.first), bench.rows_before(i, part.first + part.count));
  if (rows != Bench::kSamples) throw Skip("the rows of an output are not those of its samples");
  return cut(part.first, part.first + part.count);
}

void check_batch(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    if (layer_case.couples_samples) throw Skip("the author's cases say that samples depend on each other");
    const Bench bench = bench_of(context, layer_case);
    if (bench.is_metric()) throw Skip("a metric has no outputs; see the check sums");
    const Machine machine = bench.machine(TN_F32, false);
    bench.forward(machine, TN_F32, Bench::all());
    std::vector<Part> parts = {{0, Bench::kSamples - 1}, {1, Bench::kSamples - 1}};
    for (int64_t i = 0; i < Bench::kSamples; ++i) parts.push_back({i, 1});
    std::vector<std::vector<Numbers>> expected(parts.size());
    for (size_t p = 0; p < parts.size(); ++p)
      for (const Layer& output : bench.outputs())
        expected[p].push_back(part_of(bench, machine.output(output), parts[p]));
    for (size_t p = 0; p < parts.size(); ++p) {
      bench.forward(machine, TN_F32, parts[p]);
      const std::vector<Numbers> got = bench.read(machine);
      for (size_t k = 0; k < got.size(); ++k)
        context.expect(identical(got[k], expected[p][k]), "samples " + std::to_string(parts[p].first) + " to " +
                                                              std::to_string(parts[p].first + parts[p].count - 1) +
                                                              " have other values of output " + std::to_string(k) +
                                                              " alone than among " + std::to_string(Bench::kSamples) +
                                                              ": " + at(got[k], expected[p][k]));
    }
  });
}

void check_empty(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case);
    const Machine machine = bench.machine(TN_F32, true);
    const auto step = [&](const Part& part) {
      bench.forward(machine, TN_F32, part);
      std::vector<Numbers> outputs = bench.read(machine);
      if (bench.can_go_back()) bench.backward(machine, TN_F32);
      return outputs;
    };
    const std::vector<Numbers> before = step(Bench::all());
    const std::vector<Numbers> none = step({0, 0});
    for (size_t k = 0; k < none.size() && !bench.is_metric(); ++k)
      context.expect(none[k].empty(), "output " + std::to_string(k) + " of an empty minibatch has " +
                                          std::to_string(none[k].size()) + " elements; expected none");
    if (bench.has_sequences())
      for (const Numbers& output : step({0, Bench::kSamples, true}))
        context.expect(std::all_of(output.begin(), output.end(), [](double x) { return !std::isnan(x); }),
                       "samples without rows give NaN");
    const std::vector<Numbers> after = step(Bench::all());
    for (size_t k = 0; k < after.size(); ++k)
      context.expect(identical(before[k], after[k]),
                     "output " + std::to_string(k) + " differs after an empty minibatch: " + at(before[k], after[k]));
  });
}

void check_numbers(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    const bool limited =
        std::any_of(layer_case.inputs.begin(), layer_case.inputs.end(), [](const InputSpec& i) { return i.low >= 0; });
    if (layer_case.inputs.empty()) throw Skip("the layer has no inputs");
    for (const auto& [draw, name] : {std::pair{Draw::kZeros, "zeros"}, std::pair{Draw::kEqual, "equal numbers"},
                                     std::pair{Draw::kTiny, "tiny numbers"}, std::pair{Draw::kHuge, "huge numbers"}}) {
      if (limited && draw != Draw::kEqual) continue;
      if (!layer_case.huge && draw == Draw::kHuge) continue;
      if (!layer_case.zeros && (draw == Draw::kZeros || draw == Draw::kEqual)) continue;
      const Bench bench = bench_of(context, layer_case, {1, false, draw});
      const Step step = bench.step(TN_F32, Bench::all());
      const auto expect_numbers = [&, name = name](const Numbers& values, const std::string& what) {
        for (size_t i = 0; i < values.size(); ++i)
          context.expect(!std::isnan(values[i]),
                         "element " + std::to_string(i) + " of " + what + " is NaN for " + name);
      };
      for (size_t k = 0; k < step.outputs.size(); ++k) expect_numbers(step.outputs[k], "output " + std::to_string(k));
      if (draw == Draw::kHuge || !layer_case.differentiable) continue;  // gradients may overflow
      for (const auto& [input, gradient] : step.gradients) expect_numbers(gradient, "the gradient of " + input);
    }
  });
}

// A copy of a value adds its gradients, which turns -0 into 0.
Step without_signs_of_zero(Step step) {
  for (auto& [name, gradient] : step.gradients)
    for (double& value : gradient) value += 0.0;
  return step;
}

void check_kept(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case, {1, false, Draw::kDrawn, true});
    expect_same(context, bench.step(TN_F32, Bench::all(), true), bench.step(TN_F32, Bench::all(), false),
                "differs when memory is shared");
    const Bench plain = bench_of(context, layer_case);
    expect_same(context, without_signs_of_zero(plain.step(TN_F32, Bench::all())),
                without_signs_of_zero(bench.step(TN_F32, Bench::all(), false)),
                "differs when inputs are values of other layers");
  });
  check_shared_operands(context);
}

void check_file(Context& context) {
  const Host host = context.subject().host();
  each_case(
      context,
      [&](const LayerCase& layer_case) {
        const base::TemporaryFolder folder;
        const Bench bench = bench_of(context, layer_case);
        const Machine machine = bench.machine(TN_F32, false);
        bench.forward(machine, TN_F32, Bench::all());
        const std::vector<Numbers> before = bench.read(machine);
        bench.parameters().save(bench.outputs(), folder.file("model"));
        const Model model = host.load(folder.file("model"));
        const std::vector<Numbers> after = bench.answers(host, model);
        for (size_t k = 0; k < before.size(); ++k)
          context.expect(identical(before[k], after.at(k)),
                         "output " + std::to_string(k) + " of a loaded model differs: " + at(before[k], after[k]));
        for (const std::string& name : bench.buffers())
          context.expect(identical(numbers_of(bench.parameters().get(name)), numbers_of(model.parameters.get(name))),
                         "buffer " + name + " is not saved");
      },
      2);
}

void check_memory(Context& context) {
  each_case(
      context,
      [&](const LayerCase& layer_case) {
        Refusing refusing;
        const Host host = context.subject().host({1, false, refusing.table()});
        const Bench bench(host, context.subject().type, layer_case, context.subject().seed);
        const Step before = bench.step(TN_F32, Bench::all());
        refusing.refuse_each(context, 24, [&] { (void)bench.step(TN_F32, Bench::all()); });
        expect_same(context, before, bench.step(TN_F32, Bench::all()), "differs after memory was refused");
      },
      2);
}

void check_sums(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case);
    if (!bench.is_metric()) throw Skip("only a metric is summed over minibatches");
    const Machine machine = bench.machine(TN_F64, false);
    const auto values_of = [&](const std::vector<Part>& parts) {
      const tenon::Metrics sums(machine);
      for (const Part& part : parts) {
        bench.forward(machine, TN_F64, part);
        sums.append(machine);
      }
      Numbers values;
      for (const Metric& metric : sums.read().metrics) values.push_back(metric.value);
      return values;
    };
    const Numbers total = values_of({Bench::all()});
    const Numbers split = values_of({{0, 2}, {2, 0}, {2, 3}});
    context.expect(!total.empty() && total.size() == split.size(), "the metric gives no values");
    for (size_t i = 0; i < total.size(); ++i)
      context.expect(
          layer_case.couples_samples || std::abs(total[i] - split[i]) <= 1e-9 * std::max(1.0, std::abs(total[i])),
          "value " + std::to_string(i) + " of two minibatches is " + shown(split[i]) +
              ", of one with the same samples " + shown(total[i]));
  });
}

}  // namespace

const std::vector<Check>& layer_checks() {
  static const std::vector<Check> checks = {
      {"cases", "attributes and inputs are found that its plan accepts", find_layer_cases},
      {"plan", "plan gives the same for the same arguments", check_plan},
      {"step", "forward and backward succeed with finite numbers, without exception, crash or hang", check_step},
      {"process", kProcessMeaning, check_layer_process},
      {"operands", "the host's checks of operands, memory and threads pass (TN_CHECK_ON)", check_operands},
      {"guard pages", "native kernels and primitives run on operands between pages without access", check_guard_pages},
      newer_host_check<check_layer_in>(),
      older_host_check<check_layer_in>(),
      {"run", "native kernels neither allocate nor lock nor wait nor start threads nor print", check_run},
      {"gradient", "each gradient agrees with central differences of the forward in fp64", check_gradient},
      {"request", "a gradient alone is that among all; a second backward adds", check_request},
      {"float32", "fp32 agrees with fp64, within what rounding of the inputs changes", check_float32},
      {"repeat", "the same minibatch gives the same bits, in any machine and host", check_repeat},
      {"threads", "1, 2, 3 and 8 threads give the same bits", check_threads},
      {"hosts", "a host with other attributes before, in the same process, changes nothing", check_hosts},
      {"batch", "a sample has the same bits alone and among others", check_batch},
      {"empty", "no samples, and sequences without rows", check_empty},
      {"numbers", "zeros, equal, tiny and huge numbers give no NaN", check_numbers},
      {"memory sharing", "the same bits where results may share the memory of operands, and where not", check_kept},
      {"save", "a saved model gives the same bits in another host", check_file},
      {"memory", "the host refuses each allocation in turn: a status, and no damage", check_memory},
      {"own memory", "each allocation of the plugin itself is refused in turn: a status, and no crash",
       check_own_memory},
      {"sums", "a metric over two minibatches is that over one", check_sums},
  };
  return checks;
}

}  // namespace tenon::check
