// The smallest device that trains a network: the memory of the host, synchronous calls, and two primitives,
// tenon.gemm/1 and tenon.pointwise/1, in plain loops. Layers that need others (gather, concat, sequences) and programs
// that draw random numbers are refused. Replace the loops by calls of your hardware, then the memory by its memory.
// SPDX-License-Identifier: MIT
#include <tenon/op_value.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

// ---- memory, streams, events: an open device is the host's service of memory; nothing runs later, so streams and
// events have no state, and their handles are the device

const tn_memory& memory_of(void* device) { return **static_cast<const tn_memory**>(device); }

tn_status open(const tn_device_open* open, void** device) {
  return tn::guarded(open->errors, [&] {
    if (open->index != 0) throw tn::Failure(TN_NOT_FOUND, "index", "there is one device, number 0");
    const auto* memory = static_cast<const tn_memory*>(open->services->extension(open->services->self, TN_MEMORY));
    if (memory == nullptr) throw tn::Failure(TN_UNSUPPORTED, "", "needs the service " TN_MEMORY);
    *device = new const tn_memory*(memory);
  });
}
void close(void* device) { delete static_cast<const tn_memory**>(device); }
tn_status properties(void*, const tn_errors*, tn_device_properties* to) {
  to->host_memory = 1;
  std::snprintf(to->name, sizeof to->name, "my_plugin");
  to->memory_bytes = 0;  // unknown
  return TN_OK;
}
void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
  void* const made = memory_of(device).allocate(memory_of(device).self, bytes + 1);
  if (made == nullptr) tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "the host has not so much memory");
  return made;
}
void release(void* device, void* memory, uint64_t bytes) {
  memory_of(device).release(memory_of(device).self, memory, bytes + 1);
}
tn_status copy(void*, const tn_errors*, const tn_copy* it) {
  if (it->bytes > 0) std::memmove(it->to, it->from, it->bytes);
  return TN_OK;
}
tn_status fill(void*, const tn_errors*, void*, void* memory, uint8_t value, uint64_t bytes) {
  if (bytes > 0) std::memset(memory, value, bytes);
  return TN_OK;
}
tn_status make_handle(void* device, const tn_errors*, void** handle) {
  *handle = device;
  return TN_OK;
}
void drop_handle(void*, void*) {}
tn_status wait_for(void*, const tn_errors*, void*) { return TN_OK; }
tn_status order(void*, const tn_errors*, void*, void*) { return TN_OK; }

// ---- elements of any type, as doubles

// Calls use(value of the element type); false for a type that is not known.
template <typename Use>
bool with_type(tn_dtype type, Use&& use) {
  switch (type) {
    case TN_F32:
      use(float{});
      return true;
    case TN_F64:
      use(double{});
      return true;
    case TN_I8:
      use(int8_t{});
      return true;
    case TN_I16:
      use(int16_t{});
      return true;
    case TN_I32:
      use(int32_t{});
      return true;
    case TN_I64:
      use(int64_t{});
      return true;
    case TN_U8:
    case TN_BOOL:
      use(uint8_t{});
      return true;
    case TN_U16:
      use(uint16_t{});
      return true;
    case TN_U32:
      use(uint32_t{});
      return true;
    default:
      return false;
  }
}
bool is_known(tn_dtype type) {
  return with_type(type, [](auto) {});
}
double load(tn_dtype type, const void* from, int64_t i) {
  double result = 0;
  with_type(type, [&](auto zero) { result = static_cast<double>(static_cast<const decltype(zero)*>(from)[i]); });
  return result;
}
void store(tn_dtype type, void* to, int64_t i, double value) {
  if (type == TN_BOOL) value = value != 0 ? 1 : 0;
  with_type(type, [&](auto zero) { static_cast<decltype(zero)*>(to)[i] = static_cast<decltype(zero)>(value); });
}
double replaced_or_added(const tn::Call& call, uint32_t output, tn_dtype type, const void* to, int64_t i,
                         double value) {
  return call.adds(output) ? load(type, to, i) + value : value;
}

// Makes the prepared call of a class with a function run.
template <typename Binding, typename Site>
tn_status prepare(void*, const tn_services*, const tn_errors* errors, const Site* site, tn_prepared* prepared) {
  return tn::guarded(errors, [&] {
    auto made = std::make_unique<Binding>(*site);
    prepared->workspace_bytes = made->workspace_bytes();
    prepared->run = [](void* self, const tn_execution* execution, const tn_call* call) {
      return tn::guarded(execution->errors, [&] { static_cast<Binding*>(self)->run(tn::Call(*execution, *call)); });
    };
    prepared->destroy = [](void* self) { delete static_cast<Binding*>(self); };
    prepared->binding = made.release();
  });
}

// ---- tenon.gemm/1: C = alpha op(A) op(B), for each matrix of a batch

class Product {
 public:
  explicit Product(const tn_gemm& gemm) : gemm_(gemm) {
    if (gemm.dtype != TN_F32 && gemm.dtype != TN_F64)
      throw tn::Failure(TN_UNSUPPORTED, "", "products of other types than float32 and float64");
  }
  static uint64_t workspace_bytes() { return 0; }

  void run(const tn::Call& call) const {
    const int64_t batch = call.size(gemm_.batch), m = call.size(gemm_.m), n = call.size(gemm_.n),
                  k = call.size(gemm_.k);
    const auto *a = call.in<uint8_t>(0), *b = call.in<uint8_t>(1);
    auto* const c = call.out<uint8_t>(0);
    if (c == nullptr) return;
    const bool turned_a = (gemm_.flags & TN_TRANSPOSE_A) != 0, turned_b = (gemm_.flags & TN_TRANSPOSE_B) != 0;
    for (int64_t g = 0; g < batch; ++g)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;  // in the order of k alone, so that a row does not depend on the others
          for (int64_t l = 0; l < k; ++l)
            sum += load(gemm_.dtype, a, g * m * k + (turned_a ? l * m + i : i * k + l)) *
                   load(gemm_.dtype, b, g * k * n + (turned_b ? j * k + l : l * n + j));
          const int64_t at = (g * m + i) * n + j;
          store(gemm_.dtype, c, at, replaced_or_added(call, 0, gemm_.dtype, c, at, gemm_.alpha * sum));
        }
  }

 private:
  tn_gemm gemm_;
};

// ---- tenon.pointwise/1: one value after the other, each in full and as doubles, in the workspace. Ints are exact
// below 2^53, and do not wrap around.

class Pointwise {
 public:
  explicit Pointwise(const tn_pointwise_site& site)
      : rows_(site.rows),
        columns_(site.columns),
        instructions_(site.program->instructions, site.program->instructions + site.program->instructions_count),
        outputs_(site.program->outputs, site.program->outputs + site.program->outputs_count),
        input_types_(site.inputs, site.inputs + site.program->inputs_count),
        output_types_(site.outputs, site.outputs + site.program->outputs_count),
        extents_(site.extents, site.extents + site.program->instructions_count) {
    for (const tn_instruction& in : instructions_) {
      const tn_opcode info = tn_op_info(in.op);
      if (info.op_class == TN_CLASS_NONE || info.op_class == TN_CLASS_RANDOM)
        throw tn::Failure(TN_UNSUPPORTED, "",
                          "programs with the opcode " + std::to_string(in.op) + " (" + info.name + ")");
    }
    for (const std::vector<tn_dtype>* types : {&input_types_, &output_types_})
      for (const tn_dtype type : *types)
        if (!is_known(type)) throw tn::Failure(TN_UNSUPPORTED, "", "programs with operands of an unknown type");
  }
  uint64_t workspace_bytes() const {
    return instructions_.size() * static_cast<uint64_t>(rows_.bound * columns_.bound) * sizeof(double);
  }

  void run(const tn::Call& call) const {
    const Grid grid = {extents_, call.size(rows_), call.size(columns_), static_cast<double*>(call->workspace)};
    for (size_t i = 0; i < instructions_.size(); ++i) compute(grid, static_cast<int32_t>(i), call);
    for (uint32_t o = 0; o < outputs_.size(); ++o) {
      const int32_t number = outputs_[o].value;
      auto* const to = call.out<uint8_t>(o);
      if (to == nullptr) continue;
      for (int64_t i = 0; i < grid.elements(number); ++i)
        store(output_types_[o], to, i, replaced_or_added(call, o, output_types_[o], to, i, *(grid.first(number) + i)));
    }
  }

 private:
  // The grid of a run, and the values: [instructions, rows * columns].
  struct Grid {
    const std::vector<uint8_t>& extents;
    int64_t rows, columns;
    double* values;

    uint8_t extent(int32_t number) const { return extents[static_cast<size_t>(number)]; }
    int64_t height(int32_t number) const { return (extent(number) & TN_PER_ROW) != 0 ? rows : 1; }
    int64_t width(int32_t number) const { return (extent(number) & TN_PER_COLUMN) != 0 ? columns : 1; }
    int64_t elements(int32_t number) const { return height(number) * width(number); }
    double* first(int32_t number) const { return values + number * rows * columns; }
    double& at(int32_t number, int64_t row, int64_t column) const {
      const int64_t r = height(number) == 1 ? 0 : row, c = width(number) == 1 ? 0 : column;
      return first(number)[r * width(number) + c];
    }
  };

  void compute(const Grid& grid, int32_t number, const tn::Call& call) const {
    const tn_instruction& in = instructions_[static_cast<size_t>(number)];
    const tn_opcode info = tn_op_info(in.op);
    if (info.op_class == TN_CLASS_REDUCTION) return reduce(grid, number, in);
    for (int64_t r = 0; r < grid.height(number); ++r)
      for (int64_t c = 0; c < grid.width(number); ++c) {
        double& to = grid.at(number, r, c);
        const auto operand = [&](int32_t i) { return grid.at(i, r, c); };
        if (in.op == TN_OP_INPUT) {
          const auto input = static_cast<uint32_t>(in.a);
          to = load(input_types_[input], call.in<uint8_t>(input), &to - grid.first(number));
        } else if (in.op == TN_OP_CONSTANT) {
          to = tn_op_value(TN_OP_CAST, in.kind, in.number, 0, 0);
        } else if (in.op == TN_OP_ROW || in.op == TN_OP_COLUMN) {
          to = static_cast<double>(in.op == TN_OP_ROW ? r : c);
        } else {
          to = tn_op_value(in.op, in.kind, operand(in.a), info.operands > 1 ? operand(in.b) : 0,
                           info.operands > 2 ? operand(in.c) : 0);
        }
      }
  }

  static void reduce(const Grid& grid, int32_t number, const tn_instruction& in) {
    std::fill_n(grid.first(number), grid.elements(number), tn_op_start(in.op));
    for (int64_t r = 0; r < grid.height(in.a); ++r)
      for (int64_t c = 0; c < grid.width(in.a); ++c) {
        double& to = grid.at(number, r, c);
        to = tn_op_value(in.op, in.kind, to, grid.at(in.a, r, c), 0);
      }
  }

  tn_dim rows_, columns_;
  std::vector<tn_instruction> instructions_;
  std::vector<tn_program_output> outputs_;
  std::vector<tn_dtype> input_types_, output_types_;
  std::vector<uint8_t> extents_;
};

// ---- the tables

const void* extension(void*, const char* id) {
  static constexpr tn_gemm_table kGemm = {sizeof(tn_gemm_table), 0, &prepare<Product, tn_gemm>};
  static constexpr tn_pointwise_table kPointwise = {sizeof(tn_pointwise_table), TN_OPSET,
                                                    &prepare<Pointwise, tn_pointwise_site>};
  if (std::strcmp(id, TN_GEMM) == 0) return &kGemm;
  if (std::strcmp(id, TN_POINTWISE) == 0) return &kPointwise;
  return nullptr;
}

constexpr const char* kTables[] = {TN_GEMM, TN_POINTWISE, nullptr};
constexpr tn_device_description kDescription = {sizeof(tn_device_description), kDLExtDev, "example.my_plugin",
                                                "Plain loops: products and pointwise programs in float32 and float64",
                                                kTables};

// The members of a table that begins with the size of its newest version.
tn_device_type device_type() {
  tn_device_type type = {};
  type.size = sizeof type;
  type.description = &kDescription;
  type.count = [](void*, const tn_errors*) -> int32_t { return 1; };
  type.open = &open;
  type.close = &close;
  type.properties = &properties;
  type.allocate = &allocate;
  type.release = &release;
  type.copy = &copy;
  type.fill = &fill;
  type.stream_create = type.event_create = &make_handle;
  type.stream_destroy = type.event_destroy = &drop_handle;
  type.stream_wait = &wait_for;
  type.event_record = type.event_wait = &order;
  type.extension = &extension;
  return type;
}

void describe(tn::Plugin& plugin) {
  static const tn_device_type kDevice = device_type();
  plugin.about("example.my_plugin", "0.1.0", "A device of plain loops", "MIT");
  plugin.device(&kDevice);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
