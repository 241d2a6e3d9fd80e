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
    set_sources(builder);
    set_primitives(builder);
    set_moves(builder);
    set_segments(builder);
    set_orders(builder);
    set_images(builder);
    set_scans(builder);
    set_results(builder);
    const AttributesView attributes(body_.type->description.attributes, body_.layer->attributes);
    const tn_status status = call_plugin(*body_.type, sink_.who(), {Tag::kSetup, "lower"}, body_.type->table.lower,
                                         attributes.get(), &builder);
    sink_.check(status != TN_OK ? status : status_);
    if (scans_.is_open()) fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "lower returned before scan_end");
  }

 private:
  // Runs a builder call. Returns the first failure of all calls so far, or TN_OK.
  template <typename Work>
  static tn_status done(void* self, Work&& work) noexcept {
    const LoanUse use(self);
    auto* const recording = use.object<BodyRecorder>();
    if (recording == nullptr) return TN_PLUGIN_FAULT;
    const tn_status status = guarded(recording->sink_, [&] { work(*recording); });
    if (status != TN_OK && recording->status_ == TN_OK) recording->status_ = status;
    return recording->status_;
  }
  // The same for a call that returns a value; returns -1 if the call fails.
  template <typename Work>
  static tn_ref recorded(void* self, Work&& work) noexcept {
    tn_ref result = -1;
    done(self, [&](BodyRecorder& it) { result = work(it); });
    return result;
  }
  // Whether `value` exists; false for the result of a failed call. Throws for a number that was never returned.
  [[nodiscard]] bool known(tn_ref value) const {
    if (value < 0) return false;
    if (static_cast<size_t>(value) >= lowered_.graph.values.size()) fail(TN_PLUGIN_FAULT, "lower uses value ", value);
    return true;
  }

  static void set_sources(tn_builder& builder) {
    builder.status = [](void* self) { return done(self, [](BodyRecorder&) {}); };
    builder.input = [](void* self, uint32_t port, uint32_t index) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        const std::vector<Port>& ports = it.body_.type->description.inputs;
        if (port >= ports.size()) fail(TN_PLUGIN_FAULT, "lower uses input ", port);
        const bool variadic = (ports[port].flags & TN_PORT_VARIADIC) != 0;
        const size_t at = size_t{port} + index;
        return (index == 0 || variadic) && at < it.body_.inputs.size() ? it.body_.inputs[at] : kNoValue;
      });
    };
    builder.parameter = [](void* self, uint32_t index) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (index >= it.body_.parameters.size()) fail(TN_PLUGIN_FAULT, "lower uses parameter ", index);
        return it.body_.parameters[index];
      });
    };
    builder.buffer = [](void* self, uint32_t index) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (index >= it.body_.buffers.size()) fail(TN_PLUGIN_FAULT, "lower uses buffer ", index);
        return it.lowered_.buffers[it.body_.buffers[index]].computed;
      });
    };
    builder.carried = [](void* self, uint32_t index) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (index >= it.body_.carried.size()) fail(TN_PLUGIN_FAULT, "lower uses carried state ", index);
        return it.lowered_.carried[it.body_.carried[index]].now;
      });
    };
    builder.constant = [](void* self, const tn_spec* spec, const void* data) {
      return recorded(self, [&](BodyRecorder& it) { return it.constant(spec, data); });
    };
    builder.spec = [](void* self, tn_ref value) -> const tn_spec* {
      const tn_spec* spec = nullptr;
      done(self, [&](BodyRecorder& it) {
        if (value < 0 || static_cast<size_t>(value) >= it.lowered_.graph.values.size()) return;
        it.specs_.push_back({inside_of(it.body_.layer->branch.get(), it.lowered_.graph, value), {}});
        it.specs_.back().second = it.specs_.back().first.view();
        spec = &it.specs_.back().second;
      });
      return spec;
    };
  }

  static void set_primitives(tn_builder& builder) {
    builder.gemm = [](void* self, tn_ref a, tn_ref b, uint32_t flags, double alpha) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (!it.known(a) || !it.known(b)) return -1;
        return it.writer_.gemm(a, b, flags, alpha);
      });
    };
    builder.pointwise = [](void* self, const tn_pointwise* call, tn_ref* outputs) {
      return done(self, [&](BodyRecorder& it) {
        if (call == nullptr) fail(TN_PLUGIN_FAULT, "pointwise without a call");
        it.pointwise(*call, outputs);
      });
    };
    builder.gather = [](void* self, tn_ref table, tn_ref ids) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (!it.known(table) || !it.known(ids)) return -1;
        return it.writer_.gather(table, ids);
      });
    };
    builder.scatter_add = [](void* self, tn_ref rows, tn_ref ids, const tn_dim* height) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (!it.known(rows) || !it.known(ids)) return -1;
        if (height == nullptr) fail(TN_PLUGIN_FAULT, "scatter_add without a height");
        return it.writer_.scatter_add(rows, ids, given_dim(*height));
      });
    };
    builder.view = [](void* self, tn_ref value, const tn_dim* dims, int32_t rank) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (!it.known(value)) return -1;
        if (rank < 0 || rank > TN_MAX_RANK || (rank > 0 && dims == nullptr))
          fail(TN_PLUGIN_FAULT, "view with ", rank, " dimensions, or without them");
        Shape shape;
        for (int32_t i = 0; i < rank; ++i) shape.push_back(given_dim(dims[i]));
        return it.writer_.view(value, shape);
      });
    };
  }

  static void set_moves(tn_builder& builder) {
    builder.concat = [](void* self, const tn_ref* values, uint32_t count, int32_t axis) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (count > 0 && values == nullptr) fail(TN_PLUGIN_FAULT, "concat without values");
        if (!std::all_of(values, values + count, [&](tn_ref value) { return it.known(value); })) return -1;
        return it.writer_.concat({values, values + count}, axis);
      });
    };
    builder.slice = [](void* self, tn_ref value, int32_t axis, int64_t start, int64_t length) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        return it.known(value) ? it.writer_.slice(value, axis, start, length) : -1;
      });
    };
    builder.pad = [](void* self, tn_ref value, int32_t axis, int64_t before, int64_t after) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        return it.known(value) ? it.writer_.pad(value, axis, before, after) : -1;
      });
    };
    builder.transpose = [](void* self, tn_ref value, const int32_t* axes, int32_t rank) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (!it.known(value)) return -1;
        if (rank < 0 || rank > TN_MAX_RANK || (rank > 0 && axes == nullptr))
          fail(TN_PLUGIN_FAULT, "transpose with ", rank, " axes, or without them");
        return it.writer_.transpose(value, {axes, axes + rank});
      });
    };
  }

  static void set_segments(tn_builder& builder) {
    builder.segment = [](void* self, int32_t op, tn_ref value, const tn_dim* rows, int64_t by) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (value >= 0 && !it.known(value)) return -1;
        if (rows == nullptr) fail(TN_PLUGIN_FAULT, "segment without its dimension");
        return it.writer_.segment(op, value < 0 ? kNoValue : value, given_dim(*rows), by);
      });
    };
    builder.weights = [](void* self, tn_ref sparse) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (!it.known(sparse)) return -1;
        const auto weights = it.weights_.find(sparse);
        return weights == it.weights_.end() ? kNoValue : weights->second;
      });
    };
    builder.rows = [](void* self, uint32_t index, tn_dim* rows) {
      return done(self, [&](BodyRecorder& it) {
        const std::vector<DerivedRows>& derived = it.body_.layer->derived_rows;
        if (index >= derived.size() || rows == nullptr)
          fail(TN_PLUGIN_FAULT, "lower uses rows ", index, "; plan declared ", derived.size());
        *rows = tn_dim_symbol(derived[index].rows);
      });
    };
  }

  static void set_orders(tn_builder& builder) {
    builder.argsort = [](void* self, tn_ref value, uint32_t flags, int64_t count) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        return it.known(value) ? it.writer_.argsort(value, flags, count) : -1;
      });
    };
    builder.prefix_sum = [](void* self, tn_ref value, uint32_t flags) {
      return recorded(
          self, [&](BodyRecorder& it) -> tn_ref { return it.known(value) ? it.writer_.prefix_sum(value, flags) : -1; });
    };
  }

  // Returns what a plugin gave, whose size it states.
  template <typename Given>
  static const Given& given(const Given* from, const char* what) {
    if (from == nullptr || from->size < sizeof(Given)) fail(TN_PLUGIN_FAULT, what, " is not there, or too short");
    return *from;
  }
  static void set_images(tn_builder& builder) {
    builder.conv = [](void* self, int32_t op, const tn_window* window, int64_t groups, tn_ref a, tn_ref b) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (!it.known(a) || !it.known(b)) return -1;
        return it.writer_.conv(op, given(window, "the window of a conv"), groups, a, b);
      });
    };
    builder.pool = [](void* self, int32_t op, const tn_window* window, tn_ref value, tn_ref positions,
                      tn_ref* outputs) {
      return done(self, [&](BodyRecorder& it) {
        if (outputs == nullptr) fail(TN_PLUGIN_FAULT, "pool without outputs");
        outputs[0] = -1;
        const bool reads_positions = op == TN_POOL_SCATTER || op == TN_POOL_TAKE;
        if (!it.known(value) || (reads_positions && !it.known(positions))) return;
        const tn_window& moved = given(window, "the window of a pool");
        const std::vector<ValueId> made = it.writer_.pool(op, moved, value, reads_positions ? positions : kNoValue);
        std::copy(made.begin(), made.end(), outputs);
      });
    };
    builder.resize = [](void* self, const tn_resize* resize, tn_ref value) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        return it.known(value) ? it.writer_.resize(given(resize, "the map of a resize"), value) : -1;
      });
    };
  }

  static void set_scans(tn_builder& builder) {
    builder.scan_begin = [](void* self, const tn_dim* rows, uint32_t flags, tn_dim* steps) {
      return done(self, [&](BodyRecorder& it) {
        if (rows == nullptr || steps == nullptr) fail(TN_PLUGIN_FAULT, "scan_begin without rows or steps");
        *steps = it.scans_.begin(given_dim(*rows), flags);
      });
    };
    builder.scan_input = [](void* self, tn_ref value) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref { return it.known(value) ? it.scans_.input(value) : -1; });
    };
    builder.scan_memory = [](void* self, const tn_spec* spec, tn_ref initial) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref {
        if (spec == nullptr) fail(TN_PLUGIN_FAULT, "scan_memory without a spec");
        if (initial != -1 && !it.known(initial)) return -1;
        return it.scans_.memory(Spec::from(*spec), initial);
      });
    };
    builder.scan_next = [](void* self, tn_ref memory, tn_ref next) {
      return done(self, [&](BodyRecorder& it) {
        if (it.known(memory) && it.known(next)) it.scans_.next(memory, next);
      });
    };
    builder.scan_end = [](void* self) { return done(self, [](BodyRecorder& it) { it.scans_.end(); }); };
    builder.scan_last = [](void* self, tn_ref memory) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref { return it.known(memory) ? it.scans_.last(memory) : -1; });
    };
    builder.scan_output = [](void* self, tn_ref value) {
      return recorded(self, [&](BodyRecorder& it) -> tn_ref { return it.known(value) ? it.scans_.output(value) : -1; });
    };
  }

  static void set_results(tn_builder& builder) {
    builder.output = [](void* self, uint32_t port, tn_ref value) {
      return done(self, [&](BodyRecorder& it) {
        if (!it.known(value)) return;
        if (port >= it.body_.outputs.size())
          fail(TN_PLUGIN_FAULT, "lower sets output ", port, "; the layer has ", it.body_.outputs.size(), " outputs");
        if (it.body_.layer->scan == nullptr && order_of(it.lowered_.graph, value) != nullptr)
          fail(TN_PLUGIN_FAULT, "lower sets output ", port,
               " to a value of the steps of a scan, not to its scan_output");
        it.body_.outputs[port] = value;
      });
    };
    builder.buffer_next = [](void* self, uint32_t index, tn_ref value) {
      return done(self, [&](BodyRecorder& it) { it.next_buffer(index, value); });
    };
    builder.carried_next = [](void* self, uint32_t index, tn_ref value) {
      return done(self, [&](BodyRecorder& it) { it.next_carried(index, value); });
    };
    builder.state = [](void* self, uint32_t index, tn_ref value) {
      return done(self, [&](BodyRecorder& it) {
        if (!it.known(value)) return;
        if (index >= it.body_.states.size())
          fail(TN_PLUGIN_FAULT, "lower sets state ", index, "; the metric has ", it.body_.states.size(), " states");
        const Spec& spec = it.lowered_.graph.spec(value);
        if (!same(elements(spec.shape), tn_dim_constant(1)) || !is_float(spec.dtype))
          fail(TN_PLUGIN_FAULT, "state ", index, " is ", to_string(spec), "; expected one float");
        it.body_.states[index] = value;
      });
    };
  }

  void pointwise(const tn_pointwise& call, tn_ref* outputs) {
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

  void next_buffer(uint32_t index, tn_ref value) {
    if (!known(value)) return;
    if (index >= body_.buffers.size()) fail(TN_PLUGIN_FAULT, "lower gives buffer ", index);
    BufferUse& use = lowered_.buffers[body_.buffers[index]];
    const Spec& kept = lowered_.graph.spec(use.stored);
    if (!same(kept.shape, lowered_.graph.spec(value).shape))
      fail(TN_PLUGIN_FAULT, "buffer \"", use.name, "\" is ", to_string(kept), " and its next value ",
           to_string(lowered_.graph.spec(value)));
    use.next = value;
  }

  void next_carried(uint32_t index, tn_ref value) {
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
