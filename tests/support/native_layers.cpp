// SPDX-License-Identifier: Apache-2.0
#include "tests/support/native_layers.h"

#include <tenon/philox.h>

#include <algorithm>
#include <tenon/kernel.hpp>
#include <tenon/plugin.hpp>

#include "tests/support/bare_plugin.h"

namespace tenon_tests {

namespace {

// Writes, or adds, f(i) to every element of output number `to`; nothing if it is not requested.
template <typename F>
void fill(const tn::Call& call, uint32_t to, F&& f) {
  auto* const values = call.out<float>(to);
  if (values == nullptr) return;
  const bool adds = call.adds(to);
  for (int64_t i = 0; i < tn_elements(call.output(to)); ++i) values[i] = f(i) + (adds ? values[i] : 0.0F);
}

// ---- native_square

struct SquareLayer {
  static void describe(tn::LayerDescription& d) {
    d.type("native_square", "out = in^2.");
    d.input("in", "[samples, ...]");
    d.output("out", "the shape of in");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program program;
    const tn::Float x = program.full();
    program.output(x * x);
    body.output(0, body.pointwise(program, {body.input(0)}).front());
  }
};

class WholeSquare {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_square", "cpu", "whole", 10); }
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs) {
    needs.save(site.input(0));
    needs.in_place(0, 0);
    needs.backward_in_place(0, 0);
  }
  WholeSquare(const tn::KernelSite&, int32_t direction) : backward_(direction == TN_BACKWARD) {}
  // forward: in -> out, 2 in; backward: -, -, 2 in, dout -> din
  void run(const tn::Call& call) const {
    if (backward_) {
      const auto *twice = call.in<float>(2), *given = call.in<float>(3);
      return fill(call, 0, [&](int64_t i) { return twice[i] * given[i]; });
    }
    const auto* in = call.in<float>(0);
    if (call.out<float>(1) != nullptr) fill(call, 1, [&](int64_t i) { return 2 * in[i]; });
    fill(call, 0, [&](int64_t i) { return in[i] * in[i]; });
  }

 private:
  bool backward_;
};

class ForwardSquare {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_square", "cpu", "forward_only", 40); }
  ForwardSquare(const tn::KernelSite&, int32_t direction) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "", "computes forward alone");
  }
  void run(const tn::Call& call) const {
    const auto* in = call.in<float>(0);
    fill(call, 0, [&](int64_t i) { return in[i] * in[i]; });
  }
};

class UnqueriedSquare {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_square", "cpu", "no_query", 30); }
  static void query(const tn::KernelSite&, tn::KernelNeeds&) {
    throw tn::Failure(TN_UNSUPPORTED, "in", "is not for this kernel");
  }
  UnqueriedSquare(const tn::KernelSite&, int32_t) {}
  void run(const tn::Call&) const {}
};

// For machines whose products may be rounded.
class RoundingSquare {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_square", "cpu", "rounding", 50); }
  static bool supports(const tn::KernelSite& site, int32_t& /*score*/) { return site->precision == TN_PRECISION_BF16; }
  RoundingSquare(const tn::KernelSite&, int32_t direction) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "", "computes forward alone");
  }
  void run(const tn::Call& call) const {
    const auto* in = call.in<float>(0);
    fill(call, 0, [&](int64_t i) { return in[i] * in[i]; });
  }
};

const tn_kernel* unprepared_square() {
  static const tn_dtype dtypes[] = {TN_F32};
  static const tn_kernel kernel = [] {
    tn_kernel made = {};
    made.size = sizeof made;
    made.score = 20;
    made.type = "native_square";
    made.device = "cpu";
    made.name = "no_prepare";
    made.dtypes_count = 1;
    made.dtypes = dtypes;
    made.supports = [](const tn_kernel_site*, int32_t*) -> tn_status { return TN_OK; };
    made.query = [](const tn_kernel_site*, tn_kernel_needs*) -> tn_status { return TN_OK; };
    made.prepare = [](const tn_kernel_site* site, int32_t, tn_prepared* prepared) -> tn_status {
      prepared->binding = &freed_bindings();
      prepared->destroy = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
      return tn_fail(site->errors, TN_UNSUPPORTED, "in", "is not to be prepared");
    };
    return made;
  }();
  return &kernel;
}

// ---- native_count

struct CountLayer {
  static void describe(tn::LayerDescription& d) {
    d.type("native_count", "out = in, and a buffer that counts the steps.");
    d.input("in", "[samples, ...]");
    d.output("out", "the shape of in");
    d.parameter("count");
  }
  static void plan(tn::Planner& planner) {
    planner.buffer("count", tn::Spec({1}), tn::constant_initializer(0), TN_MERGE_MAX);
    planner.output(0, planner.input(0));
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program copy, next;
    copy.output(copy.full() + 0.0);
    next.output(next.full() + 1.0);
    body.output(0, body.pointwise(copy, {body.input(0)}).front());
    body.buffer_next(0, body.pointwise(next, {body.buffer(0)}).front());
  }
};

class NativeCount {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_count", "cpu", "count", 10); }
  NativeCount(const tn::KernelSite& site, int32_t direction) : backward_(direction == TN_BACKWARD) {
    if (site->buffers_count != 1) throw tn::Failure(TN_INVALID, "", "the site lacks the buffer");
  }
  // forward: in, count -> out, next count; backward: -, -, -, dout -> din
  void run(const tn::Call& call) const {
    const auto* from = call.in<float>(backward_ ? 3 : 0);
    fill(call, 0, [&](int64_t i) { return from[i]; });
    if (!backward_) fill(call, 1, [&](int64_t) { return call.in<float>(1)[0] + 1; });
  }

 private:
  bool backward_;
};

// ---- native_mask

struct MaskLayer {
  static void describe(tn::LayerDescription& d) {
    d.type("native_mask", "out = in where a draw is below 0.5, else 0.");
    d.input("in", "[samples, ...]");
    d.output("out", "the shape of in");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program program;
    const tn::Float x = program.full();
    program.output(select(program.uniform(0) < 0.5, x, 0.0 * x));
    body.output(0, body.pointwise(program, {body.input(0)}).front());
  }
};

class NativeMask {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_mask", "cpu", "mask", 10); }
  static void query(const tn::KernelSite&, tn::KernelNeeds& needs) { needs.draws(1); }
  NativeMask(const tn::KernelSite&, int32_t direction) : backward_(direction == TN_BACKWARD) {}
  // forward: in -> out; backward: -, -, dout -> din
  void run(const tn::Call& call) const {
    const auto* from = call.in<float>(backward_ ? 2 : 0);
    const tn_random& random = *call.execution().random;
    fill(call, 0, [&](int64_t i) {
      const bool kept = tn_uniform(random.seed, random.step, call->draw, static_cast<uint64_t>(i)) < 0.5F;
      return kept ? from[i] : 0.0F * from[i];
    });
  }

 private:
  bool backward_;
};

// ---- native_sum

struct SumLayer {
  static void describe(tn::LayerDescription& d) {
    d.type("native_sum", "out = in plus the output of the minibatch before.");
    d.input("in", "[samples, n]");
    d.output("out", "[samples, n]");
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[samples, n]");
    planner.carried(in);
    planner.output(0, in);
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program program;
    program.output(program.full() + program.full());
    const tn::Tensor out = body.pointwise(program, {body.input(0), body.carried(0)}).front();
    body.output(0, out);
    body.carried_next(0, out);
  }
};

class NativeSum {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_sum", "cpu", "sum", 10); }
  NativeSum(const tn::KernelSite& site, int32_t direction) : backward_(direction == TN_BACKWARD) {
    if (site->carried_count != 1) throw tn::Failure(TN_INVALID, "", "the site lacks the carried state");
  }
  // forward: in, carried -> out, next carried; backward: -, -, -, dout, - -> din, -
  void run(const tn::Call& call) const {
    const auto* from = call.in<float>(backward_ ? 3 : 0);
    if (backward_) return fill(call, 0, [&](int64_t i) { return from[i]; });
    const auto* carried = call.in<float>(1);
    fill(call, 0, [&](int64_t i) { return from[i] + carried[i]; });
    fill(call, 1, [&](int64_t i) { return from[i] + carried[i]; });
  }

 private:
  bool backward_;
};

// ---- native_table

struct TableLayer {
  static void describe(tn::LayerDescription& d) {
    d.type("native_table", "Rows of a table by their numbers.");
    d.input("ids", "[samples]", TN_PORT_INTEGER);
    d.output("out", "[samples, width]");
    d.attribute(tn::int_attribute("height").required().doc("rows of the table"));
    d.attribute(tn::int_attribute("width").required().doc("elements of a row"));
    d.parameter("values");
  }
  static void plan(tn::Planner& planner) {
    const int64_t height = planner.attributes().integer("height"), width = planner.attributes().integer("width");
    planner.parameter("values", tn::Spec({height, width}), tn::uniform_initializer(-1, 1),
                      TN_PARAMETER_SPARSE_GRADIENT);
    planner.index_limit(0, height);
    planner.output(0, tn::Spec({planner.input(0)[0], width}));
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    body.output(0, body.gather(body.parameter(0), body.input(0)));
  }
};

class NativeTable {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("native_table", "cpu", "table", 10); }
  static bool supports(const tn::KernelSite& site, int32_t&) { return site.input(0).dtype() == TN_I32; }
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs) {
    needs.read_input(0);
    needs.rows(0, site.input(0)[0]);
  }
  NativeTable(const tn::KernelSite& site, int32_t direction)
      : backward_(direction == TN_BACKWARD), width_(site.output(0)[1].offset) {}
  // forward: ids, values -> out; backward: ids, -, -, dout -> -, rows of dvalues, ids of the rows
  void run(const tn::Call& call) const {
    const auto* ids = call.in<int32_t>(0);
    if (!backward_) {
      const auto* values = call.in<float>(1);
      return fill(call, 0, [&](int64_t i) { return values[ids[i / width_] * width_ + i % width_]; });
    }
    const auto* given = call.in<float>(3);
    fill(call, 1, [&](int64_t i) { return given[i]; });
    auto* const rows = call.out<int64_t>(2);
    for (int64_t i = 0; rows != nullptr && i < tn_elements(call.output(2)); ++i) rows[i] = ids[i];
  }

 private:
  bool backward_;
  int64_t width_;
};

}  // namespace

std::atomic<int>& freed_bindings() {
  static std::atomic<int> freed{0};
  return freed;
}

NativeLayers::NativeLayers(const std::vector<std::string>& kernels) : plugin_(bare_plugin("tenon.test.native")) {
  layers_ = {tn::layer_type<SquareLayer>(), tn::layer_type<CountLayer>(), tn::layer_type<MaskLayer>(),
             tn::layer_type<SumLayer>(), tn::layer_type<TableLayer>()};
  for (const tn_kernel* kernel : {tn::kernel<WholeSquare>(), tn::kernel<ForwardSquare>(), tn::kernel<UnqueriedSquare>(),
                                  unprepared_square(), tn::kernel<RoundingSquare>(), tn::kernel<NativeCount>(),
                                  tn::kernel<NativeMask>(), tn::kernel<NativeSum>(), tn::kernel<NativeTable>()})
    if (std::find(kernels.begin(), kernels.end(), kernel->name) != kernels.end()) kernels_.push_back(kernel);
  plugin_.layers = layers_.data();
  plugin_.layers_count = static_cast<uint32_t>(layers_.size());
  plugin_.kernels = kernels_.data();
  plugin_.kernels_count = static_cast<uint32_t>(kernels_.size());
}

}  // namespace tenon_tests
