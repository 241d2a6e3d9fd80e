// The tn_builder that lower of a plugin gets as its argument. SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/builder.h"

#include <algorithm>
#include <deque>

#include "core/error.h"
#include "core/graph/loops.h"
#include "host/compile/lowering/cond_lowering.h"
#include "host/compile/lowering/scan_recorder.h"
#include "host/plugins/callback.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

namespace {

// Implements the functions of tn_builder for one body.
class BodyRecorder {
 public:
  BodyRecorder(Lowered& lowered, Body& body, const RecordingSite& site)
      : lowered_(lowered),
        body_(body),
        writer_(site.writer),
        weights_(site.weights),
        draws_(site.draws),
        training_(site.training),
        scans_(lowered.graph, writer_, site.free_symbol, site.nested),
        sink_(layer_label(*body.layer), body.type->tags) {}

  void run() {
    const Loan<tn_builder> loan(body_.type->tags, this, "builder", sink_.who());
    tn_builder& builder = *loan.get();
    builder.training = training_ ? 1 : 0;
    builder.errors = sink_.get();
    builder.user = body_.type->table.user;
    set_callbacks(builder);
    const AttributesView attributes(body_.type->description.attributes, body_.layer->attributes);
    const tn_status status = call_plugin(*body_.type, sink_.who(), {Tag::kSetup, "lower"}, body_.type->table.lower,
                                         attributes.get(), &builder);
    sink_.check(status != TN_OK ? status : status_);
    if (scans_.is_open()) fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "lower returned before scan_end");
  }

  ErrorSink& sink() { return sink_; }
  // Each call returns the first failure of all calls so far, or TN_OK.
  tn_status answer(tn_status status) {
    if (status_ == TN_OK) status_ = status;
    return status_;
  }

 private:
  // Whether `value` exists; false for the result of a failed call. Throws for a number that was never returned.
  [[nodiscard]] bool known(tn_ref value) const {
    if (value < 0) return false;
    if (static_cast<size_t>(value) >= lowered_.graph.values.size()) fail(TN_PLUGIN_FAULT, "lower uses value ", value);
    return true;
  }

  template <auto kMember>
  using Call = LentFunction<BodyRecorder, kMember>;

  static void set_callbacks(tn_builder& builder) {
    builder.status = Call<[](BodyRecorder&) {}>();
    builder.input = Call<&BodyRecorder::input>();
    builder.parameter = Call<&BodyRecorder::parameter>();
    builder.buffer = Call<&BodyRecorder::buffer>();
    builder.carried = Call<&BodyRecorder::carried>();
    builder.constant = Call<&BodyRecorder::constant>();
    builder.spec = [](void* self, tn_ref value) -> const tn_spec* {
      const tn_spec* spec = nullptr;
      lent<BodyRecorder>(self, [&](BodyRecorder& it) { spec = it.spec(value); });
      return spec;
    };
    builder.gemm = Call<&BodyRecorder::gemm>();
    builder.pointwise = Call<&BodyRecorder::pointwise>();
    builder.gather = Call<&BodyRecorder::gather>();
    builder.scatter_add = Call<&BodyRecorder::scatter_add>();
    builder.view = Call<&BodyRecorder::view>();
    builder.concat = Call<&BodyRecorder::concat>();
    builder.slice = Call<&BodyRecorder::slice>();
    builder.pad = Call<&BodyRecorder::pad>();
    builder.transpose = Call<&BodyRecorder::transpose>();
    builder.segment = Call<&BodyRecorder::segment>();
    builder.weights = Call<&BodyRecorder::weights>();
    builder.rows = Call<&BodyRecorder::rows>();
    builder.argsort = Call<&BodyRecorder::argsort>();
    builder.prefix_sum = Call<&BodyRecorder::prefix_sum>();
    builder.conv = Call<&BodyRecorder::conv>();
    builder.pool = Call<&BodyRecorder::pool>();
    builder.resize = Call<&BodyRecorder::resize>();
    builder.scan_begin = Call<&BodyRecorder::scan_begin>();
    builder.scan_input = Call<&BodyRecorder::scan_input>();
    builder.scan_memory = Call<&BodyRecorder::scan_memory>();
    builder.scan_next = Call<&BodyRecorder::scan_next>();
    builder.scan_end = Call<&BodyRecorder::scan_end>();
    builder.scan_last = Call<&BodyRecorder::scan_last>();
    builder.scan_output = Call<&BodyRecorder::scan_output>();
    builder.output = Call<&BodyRecorder::output>();
    builder.buffer_next = Call<&BodyRecorder::buffer_next>();
    builder.carried_next = Call<&BodyRecorder::carried_next>();
    builder.state = Call<&BodyRecorder::state>();
  }

  [[nodiscard]] tn_ref input(uint32_t port, uint32_t index) const {
    const std::vector<Port>& ports = body_.type->description.inputs;
    if (port >= ports.size()) fail(TN_PLUGIN_FAULT, "lower uses input ", port);
    const bool variadic = (ports[port].flags & TN_PORT_VARIADIC) != 0;
    const size_t at = size_t{port} + index;
    return (index == 0 || variadic) && at < body_.inputs.size() ? body_.inputs[at] : kNoValue;
  }
  [[nodiscard]] tn_ref parameter(uint32_t index) const {
    if (index >= body_.parameters.size()) fail(TN_PLUGIN_FAULT, "lower uses parameter ", index);
    return body_.parameters[index];
  }
  [[nodiscard]] tn_ref buffer(uint32_t index) const {
    if (index >= body_.buffers.size()) fail(TN_PLUGIN_FAULT, "lower uses buffer ", index);
    return lowered_.buffers[body_.buffers[index]].computed;
  }
  [[nodiscard]] tn_ref carried(uint32_t index) const {
    if (index >= body_.carried.size()) fail(TN_PLUGIN_FAULT, "lower uses carried state ", index);
    return lowered_.carried[body_.carried[index]].now;
  }
  const tn_spec* spec(tn_ref value) {
    if (value < 0 || static_cast<size_t>(value) >= lowered_.graph.values.size()) return nullptr;
    specs_.push_back({inside_of(body_.layer->branch.get(), lowered_.graph, value), {}});
    specs_.back().second = specs_.back().first.view();
    return &specs_.back().second;
  }
  tn_ref gemm(tn_ref a, tn_ref b, uint32_t flags, double alpha) {
    if (!known(a) || !known(b)) return -1;
    return writer_.gemm(a, b, flags, alpha);
  }
  tn_ref gather(tn_ref table, tn_ref ids) {
    if (!known(table) || !known(ids)) return -1;
    return writer_.gather(table, ids);
  }
  tn_ref scatter_add(tn_ref rows, tn_ref ids, const tn_dim* height) {
    if (!known(rows) || !known(ids)) return -1;
    if (height == nullptr) fail(TN_PLUGIN_FAULT, "scatter_add without a height");
    return writer_.scatter_add(rows, ids, given_dim(*height));
  }
  tn_ref view(tn_ref value, const tn_dim* dims, int32_t rank) {
    if (!known(value)) return -1;
    if (rank < 0 || rank > TN_MAX_RANK || (rank > 0 && dims == nullptr))
      fail(TN_PLUGIN_FAULT, "view with ", rank, " dimensions, or without them");
    Shape shape;
    for (int32_t i = 0; i < rank; ++i) shape.push_back(given_dim(dims[i]));
    return writer_.view(value, shape);
  }
  tn_ref concat(const tn_ref* values, uint32_t count, int32_t axis) {
    if (count > 0 && values == nullptr) fail(TN_PLUGIN_FAULT, "concat without values");
    if (!std::all_of(values, values + count, [&](tn_ref value) { return known(value); })) return -1;
    return writer_.concat({values, values + count}, axis);
  }
  tn_ref slice(tn_ref value, int32_t axis, int64_t start, int64_t length) {
    return known(value) ? writer_.slice(value, axis, start, length) : -1;
  }
  tn_ref pad(tn_ref value, int32_t axis, int64_t before, int64_t after) {
    return known(value) ? writer_.pad(value, axis, before, after) : -1;
  }
  tn_ref transpose(tn_ref value, const int32_t* axes, int32_t rank) {
    if (!known(value)) return -1;
    if (rank < 0 || rank > TN_MAX_RANK || (rank > 0 && axes == nullptr))
      fail(TN_PLUGIN_FAULT, "transpose with ", rank, " axes, or without them");
    return writer_.transpose(value, {axes, axes + rank});
  }
  tn_ref segment(int32_t op, tn_ref value, const tn_dim* rows, int64_t by) {
    if (value >= 0 && !known(value)) return -1;
    if (rows == nullptr) fail(TN_PLUGIN_FAULT, "segment without its dimension");
    return writer_.segment(op, value < 0 ? kNoValue : value, given_dim(*rows), by);
  }
  [[nodiscard]] tn_ref weights(tn_ref sparse) const {
    if (!known(sparse)) return -1;
    const auto weights = weights_.find(sparse);
    return weights == weights_.end() ? kNoValue : weights->second;
  }
  void rows(uint32_t index, tn_dim* rows) const {
    const std::vector<DerivedRows>& derived = body_.layer->derived_rows;
    if (index >= derived.size() || rows == nullptr)
      fail(TN_PLUGIN_FAULT, "lower uses rows ", index, "; plan declared ", derived.size());
    *rows = tn_dim_symbol(derived[index].rows);
  }
  tn_ref argsort(tn_ref value, uint32_t flags, int64_t count) {
    return known(value) ? writer_.argsort(value, flags, count) : -1;
  }
  tn_ref prefix_sum(tn_ref value, uint32_t flags) { return known(value) ? writer_.prefix_sum(value, flags) : -1; }
  // Returns what a plugin gave, whose size it states.
  template <typename Given>
  static const Given& given(const Given* from, const char* what) {
    if (from == nullptr || from->size < sizeof(Given)) fail(TN_PLUGIN_FAULT, what, " is not there, or too short");
    return *from;
  }
  tn_ref conv(int32_t op, const tn_window* window, int64_t groups, tn_ref a, tn_ref b) {
    if (!known(a) || !known(b)) return -1;
    return writer_.conv(op, given(window, "the window of a conv"), groups, a, b);
  }
  void pool(int32_t op, const tn_window* window, tn_ref value, tn_ref positions, tn_ref* outputs) {
    if (outputs == nullptr) fail(TN_PLUGIN_FAULT, "pool without outputs");
    outputs[0] = -1;
    const bool reads_positions = op == TN_POOL_SCATTER || op == TN_POOL_TAKE;
    if (!known(value) || (reads_positions && !known(positions))) return;
    const tn_window& moved = given(window, "the window of a pool");
    const std::vector<ValueId> made = writer_.pool(op, moved, value, reads_positions ? positions : kNoValue);
    std::copy(made.begin(), made.end(), outputs);
  }
  tn_ref resize(const tn_resize* resize, tn_ref value) {
    return known(value) ? writer_.resize(given(resize, "the map of a resize"), value) : -1;
  }
  void scan_begin(const tn_dim* rows, uint32_t flags, tn_dim* steps) {
    if (rows == nullptr || steps == nullptr) fail(TN_PLUGIN_FAULT, "scan_begin without rows or steps");
    *steps = scans_.begin(given_dim(*rows), flags);
  }
  tn_ref scan_input(tn_ref value) { return known(value) ? scans_.input(value) : -1; }
  tn_ref scan_memory(const tn_spec* spec, tn_ref initial) {
    if (spec == nullptr) fail(TN_PLUGIN_FAULT, "scan_memory without a spec");
    if (initial != -1 && !known(initial)) return -1;
    return scans_.memory(Spec::from(*spec), initial);
  }
  void scan_next(tn_ref memory, tn_ref next) {
    if (known(memory) && known(next)) scans_.next(memory, next);
  }
  void scan_end() { scans_.end(); }
  tn_ref scan_last(tn_ref memory) { return known(memory) ? scans_.last(memory) : -1; }
  tn_ref scan_output(tn_ref value) { return known(value) ? scans_.output(value) : -1; }
  void output(uint32_t port, tn_ref value) {
    if (!known(value)) return;
    if (port >= body_.outputs.size())
      fail(TN_PLUGIN_FAULT, "lower sets output ", port, "; the layer has ", body_.outputs.size(), " outputs");
    if (body_.layer->scan == nullptr && order_of(lowered_.graph, value) != nullptr)
      fail(TN_PLUGIN_FAULT, "lower sets output ", port, " to a value of the steps of a scan, not to its scan_output");
    body_.outputs[port] = value;
  }
  void state(uint32_t index, tn_ref value) {
    if (!known(value)) return;
    if (index >= body_.states.size())
      fail(TN_PLUGIN_FAULT, "lower sets state ", index, "; the metric has ", body_.states.size(), " states");
    const Spec& spec = lowered_.graph.spec(value);
    if (!same(elements(spec.shape), tn_dim_constant(1)) || !is_float(spec.dtype))
      fail(TN_PLUGIN_FAULT, "state ", index, " is ", to_string(spec), "; expected one float");
    body_.states[index] = value;
  }
  void pointwise(const tn_pointwise* given_call, tn_ref* outputs) {
    if (given_call == nullptr) fail(TN_PLUGIN_FAULT, "pointwise without a call");
    const tn_pointwise& call = *given_call;
    if (!TN_HAS(&call, tn_pointwise, gradient))
      fail(TN_PLUGIN_FAULT, "a tn_pointwise states a size of ", call.size, " bytes");
    if (call.program == nullptr || outputs == nullptr) fail(TN_PLUGIN_FAULT, "pointwise without program or outputs");
    auto program = std::make_shared<Program>(Program::from(*call.program));
    std::fill_n(outputs, program->outputs.size(), -1);
    if (!program->inputs.empty() && call.inputs == nullptr) fail(TN_PLUGIN_FAULT, "pointwise without its inputs");
    std::shared_ptr<Program> gradient;
    if (call.gradient != nullptr) {
      gradient = std::make_shared<Program>(Program::from(*call.gradient));
      check_author_gradient(*gradient, *program);
    }
    number_draws(*program, gradient.get());
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < program->inputs.size(); ++i) {
      if (!known(call.inputs[i])) return;
      inputs.push_back(call.inputs[i]);
    }
    const std::vector<ValueId> made = writer_.pointwise(program, inputs, call.leading, gradient);
    std::copy(made.begin(), made.end(), outputs);
  }

  // Replaces the numbers of a program's draws by numbers that are unique in the machine. The gradient program gets the
  // same numbers, so that it draws the same values.
  void number_draws(Program& program, Program* gradient) {
    std::map<int32_t, int32_t> numbers;
    for (Program* each : {&program, gradient}) {
      if (each == nullptr) continue;
      for (tn_instruction& in : each->instructions)
        if (in.op == TN_OP_UNIFORM) {
          const auto [number, fresh] = numbers.try_emplace(in.a, draws_);
          if (fresh) ++draws_;
          in.a = number->second;
        }
    }
  }

  void buffer_next(uint32_t index, tn_ref value) {
    if (!known(value)) return;
    if (index >= body_.buffers.size()) fail(TN_PLUGIN_FAULT, "lower gives buffer ", index);
    BufferUse& use = lowered_.buffers[body_.buffers[index]];
    const Spec& kept = lowered_.graph.spec(use.stored);
    if (!same(kept.shape, lowered_.graph.spec(value).shape))
      fail(TN_PLUGIN_FAULT, "buffer \"", use.name, "\" is ", to_string(kept), " and its next value ",
           to_string(lowered_.graph.spec(value)));
    use.next = value;
  }

  void carried_next(uint32_t index, tn_ref value) {
    if (!known(value)) return;
    if (index >= body_.carried.size()) fail(TN_PLUGIN_FAULT, "lower gives carried state ", index);
    CarriedUse& use = lowered_.carried[body_.carried[index]];
    const Spec &now = lowered_.graph.spec(use.now), &next = lowered_.graph.spec(value);
    if (!same(now.shape, next.shape) || now.dtype != next.dtype)
      fail(TN_PLUGIN_FAULT, "carried state ", index, " is ", to_string(now), " and its next value ", to_string(next));
    use.next = value;
  }

  // Adds a value whose elements are known; the machine copies them into its memory once.
  tn_ref constant(const tn_spec* given, const void* data) {
    if (given == nullptr) fail(TN_PLUGIN_FAULT, "constant without a spec");
    Spec spec = Spec::from(*given);
    const Dim count = elements(spec.shape);
    if (count.symbol != TN_SYMBOL_NONE) fail(TN_PLUGIN_FAULT, "constant of varying shape ", to_string(spec));
    if (spec.storage != TN_DENSE || spec.levels != 0 || !spec.outer.empty())
      fail(TN_UNSUPPORTED, "a constant that is ", storage_name(spec.storage), "; expected dense");
    constexpr int64_t kMostElements = int64_t{1} << 31;
    if (count.offset > kMostElements)
      fail(TN_UNSUPPORTED, "a constant of ", count.offset, " elements; at most ", kMostElements);
    if (data == nullptr && count.offset > 0) fail(TN_PLUGIN_FAULT, "constant ", to_string(spec), " without data");
    const auto length = static_cast<size_t>(count.offset);
    ConstantUse use;
    if (spec.dtype == TN_COMPUTE) {
      spec.dtype = writer_.compute();
      const auto* const numbers = static_cast<const double*>(data);
      if (spec.dtype == TN_F64) {
        use.bytes.assign(static_cast<const std::byte*>(data), static_cast<const std::byte*>(data) + 8 * length);
      } else {
        const std::vector<float> rounded(numbers, numbers + length);
        const auto* const bytes = reinterpret_cast<const std::byte*>(rounded.data());
        use.bytes.assign(bytes, bytes + sizeof(float) * length);
      }
    } else {
      if (tn_dtype_bytes(spec.dtype) == 0) fail(TN_UNSUPPORTED, "constant ", to_string(spec), " of less than 8 bits");
      const auto* const bytes = static_cast<const std::byte*>(data);
      use.bytes.assign(bytes, bytes + tn_dtype_bytes(spec.dtype) * length);
    }
    use.value = lowered_.graph.add_external(spec, body_.layer->name);
    lowered_.constants.push_back(std::move(use));
    return lowered_.constants.back().value;
  }

  Lowered& lowered_;
  Body& body_;
  GraphWriter writer_;
  const std::map<ValueId, ValueId>& weights_;
  int32_t& draws_;
  const bool training_;
  ScanRecorder scans_;
  ErrorSink sink_;
  tn_status status_ = TN_OK;                    // the first failure
  std::deque<std::pair<Spec, tn_spec>> specs_;  // returned by builder.spec; a deque keeps their addresses
};

}  // namespace

void record(Lowered& lowered, Body& body, const RecordingSite& site) { BodyRecorder(lowered, body, site).run(); }

}  // namespace tenon::host
