// SPDX-License-Identifier: Apache-2.0
#include "host/compile/prepare_call.h"

#include "core/error.h"
#include "host/compile/call_sites.h"
#include "host/compile/native_kernel.h"

namespace tenon::host {

namespace {

// Prepares the call of one node.
class CallPreparer {
 public:
  CallPreparer(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds, Device& device,
               Prepared& prepared, ErrorSink& errors)
      : graph_(graph), node_(node), bounds_(bounds), device_(device), prepared_(prepared), errors_(errors) {}

  std::string prepare() {
    if (!node_.is<NativeCall>() && !node_.is<View>()) require_whole_bytes();
    std::visit([&](const auto& operation) { prepare(operation); }, node_.operation);
    return kernel_;
  }

 private:
  void prepare(const Pointwise& pointwise) {
    const PointwiseSite site = pointwise_site(graph_, pointwise, node_.inputs, node_.outputs, bounds_);
    prepare_by(TN_POINTWISE, &tn_pointwise_table::prepare, site.get());
  }

  void prepare(const Gemm& gemm) {
    const tn_gemm product = gemm_of(graph_, node_, gemm, bounds_);
    if (!node_.epilogue) {
      if (gemm.packed) return prepare_packed(&tn_packed_gemm_table::prepare_multiply, product);
      return prepare_by(TN_GEMM, &tn_gemm_table::prepare, &product);
    }
    const PointwiseSite site = epilogue_site(graph_, node_, bounds_);
    const tn_gemm_epilogue epilogue = {sizeof epilogue, node_.epilogue->product, &product, site.get()};
    if (gemm.packed) return prepare_packed(&tn_packed_gemm_table::prepare_epilogue, epilogue);
    prepare_by(TN_GEMM_EPILOGUE, &tn_gemm_epilogue_table::prepare, &epilogue);
  }

  void prepare(const Pack& /*pack*/) {
    prepare_packed(&tn_packed_gemm_table::prepare_pack, packed_gemm_of(graph_, node_, bounds_));
  }

  void prepare(const Gather& /*gather*/) {
    const bool sums = node_.inputs.size() == 3;
    prepare_rows(sums ? TN_GATHER_SUM : TN_GATHER_ROWS, graph_.spec(node_.inputs[0]));
  }

  void prepare(const GatherGemm& /*product*/) {
    const GatherGemmSite both(graph_, node_, bounds_);
    prepare_by(TN_GATHER_GEMM, &tn_gather_gemm_table::prepare, &both.site);
  }

  void prepare(const ScatterAdd& /*scatter*/) { prepare_rows(TN_SCATTER_ADD, graph_.spec(node_.outputs[0])); }

  void prepare(const Move& copies) {
    const Shape to = bounded(graph_.spec(node_.outputs[0]).shape, bounds_);
    std::vector<std::pair<Shape, Shape>> shapes;  // per part: its input, its box
    for (const MovePart& part : copies.parts)
      shapes.emplace_back(bounded(graph_.spec(node_.inputs[part.input]).shape, bounds_), bounded(part.box, bounds_));
    std::vector<tn_move_part> parts;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const MovePart& part = copies.parts[i];
      parts.push_back({sizeof(tn_move_part), part.input, shapes[i].first.data(), shapes[i].second.data(),
                       part.from.data(), part.to.data(), part.axes.data()});
    }
    std::vector<const tn_move_part*> pointers;
    for (const tn_move_part& part : parts) pointers.push_back(&part);
    tn_move move = {};
    move.size = sizeof move;
    move.dtype = graph_.spec(node_.outputs[0]).dtype;
    move.rank = static_cast<int32_t>(to.size());
    move.parts_count = static_cast<uint32_t>(parts.size());
    move.to = to.data();
    move.parts = pointers.data();
    move.fill = copies.fill ? 1 : 0;
    prepare_by(TN_MOVE, &tn_move_table::prepare, &move);
  }

  void prepare(const View& /*view*/) {}  // shares memory: nothing runs
  void prepare(const Segment& over) {
    // The value determines the shape of a row; without a value a row is one integer, as in the output.
    const ValueId wide = node_.inputs[0] == kNoValue ? node_.outputs[0] : node_.inputs[0];
    const Spec& spec = graph_.spec(wide);
    tn_segment segment = {};
    segment.size = sizeof segment;
    segment.op = over.op;
    segment.dtype = spec.dtype;
    segment.by = over.by;
    segment.rows = bounded(over.rows, bounds_);
    segment.segments = bounded(graph_.rows.at(over.rows.symbol).outer, bounds_);
    segment.width = bounded(elements(spec.shape.data() + 1, spec.shape.size() - 1), bounds_);
    prepare_by(TN_SEGMENT, &tn_segment_table::prepare, &segment);
  }

  void prepare(const Argsort& argsort) {
    const auto [rows, columns] = grid_of(node_.inputs[0]);
    const tn_argsort site = {sizeof site, graph_.spec(node_.inputs[0]).dtype, argsort.flags, 0, rows,
                             columns,     grid_of(node_.outputs[0]).second};
    prepare_by(TN_ARGSORT, &tn_argsort_table::prepare, &site);
  }

  void prepare(const PrefixSum& sum) {
    const auto [rows, columns] = grid_of(node_.inputs[0]);
    const tn_prefix_sum site = {sizeof site, graph_.spec(node_.inputs[0]).dtype, sum.flags, 0, rows, columns};
    prepare_by(TN_PREFIX_SUM, &tn_prefix_sum_table::prepare, &site);
  }

  void prepare(const Conv& /*conv*/) {
    const tn_conv conv = conv_of(graph_, node_, bounds_);
    if (!node_.epilogue) return prepare_by(TN_CONV, &tn_conv_table::prepare, &conv);
    const PointwiseSite site = epilogue_site(graph_, node_, bounds_);
    const tn_conv_epilogue epilogue = {sizeof epilogue, node_.epilogue->product, &conv, site.get()};
    prepare_by(TN_CONV_EPILOGUE, &tn_conv_epilogue_table::prepare, &epilogue);
  }

  void prepare(const Pool& pool) {
    const Spec& spec = graph_.spec(node_.inputs[0]);
    tn_pool site = {};
    site.size = sizeof site;
    site.dtype = spec.dtype;
    site.op = pool.op;
    site.samples = bounded(spec.shape[0], bounds_);
    site.channels = spec.shape.back().offset;
    site.window = &pool.window;
    prepare_by(TN_POOL, &tn_pool_table::prepare, &site);
  }

  void prepare(const Resize& resize) {
    const Spec& spec = graph_.spec(node_.inputs[0]);
    const tn_resize_site site = {sizeof site, spec.dtype, bounded(spec.shape[0], bounds_), spec.shape.back().offset,
                                 &resize.how};
    prepare_by(TN_RESIZE, &tn_resize_table::prepare, &site);
  }

  void prepare(const StepTables& /*tables*/) {}  // the host makes them
  void prepare(const StepRowTables& /*tables*/) {}
  void prepare(const Memory& /*memory*/) {}
  void prepare(const LastStep& /*last*/) {}
  void prepare(const Coalesce& coalesces) {
    if (coalesces.stride() == 5) {
      const CoalesceProductsSite products(graph_, node_, bounds_);
      return prepare_by(TN_COALESCE_PRODUCTS, &tn_coalesce_products_table::prepare, &products.site);
    }
    const Spec& whole = graph_.spec(node_.outputs[0]);
    std::vector<tn_coalesce_part> parts;
    for (size_t i = 0; i < node_.inputs.size(); i += 3) {
      const Spec& ids = graph_.spec(node_.inputs[i + 1]);
      tn_coalesce_part part = {};
      part.size = sizeof part;
      part.ids = ids.dtype;
      part.count = bounded(elements(ids.shape), bounds_);
      part.has_offsets = node_.inputs[i + 2] == kNoValue ? 0 : 1;
      part.segments =
          part.has_offsets != 0 ? bounded(graph_.spec(node_.inputs[i]).shape[0], bounds_) : tn_dim_constant(0);
      parts.push_back(part);
    }
    std::vector<const tn_coalesce_part*> pointers;
    for (const tn_coalesce_part& part : parts) pointers.push_back(&part);
    tn_coalesce coalesce = {};
    coalesce.size = sizeof coalesce;
    coalesce.dtype = whole.dtype;
    coalesce.height = bounded(whole.shape[0], bounds_);
    coalesce.width = bounded(elements(whole.shape.data() + 1, whole.shape.size() - 1), bounds_);
    coalesce.parts_count = static_cast<uint32_t>(parts.size());
    coalesce.parts = pointers.data();
    prepare_by(TN_ROW_SPARSE_TABLE, &tn_row_sparse_table::prepare_coalesce, &coalesce);
  }

  void prepare(const NativeCall& native) {
    auto& site = *static_cast<KernelSite*>(native.site.get());
    kernel_ = site.kernel->table.name;
    std::optional<Prepared>& made = node_.backward ? site.backward : site.forward;
    if (!made) fail(TN_INTERNAL, ComponentName{errors_.who()}, "its kernel was not prepared");
    prepared_ = std::move(*made);
    made.reset();
  }

  // tall: spec of the table [height, width...] whose rows are read or added to.
  void prepare_rows(int32_t op, const Spec& tall) {
    const Spec& ids = graph_.spec(node_.inputs[1]);
    tn_gather gather = {};
    gather.size = sizeof gather;
    gather.dtype = tall.dtype;
    gather.ids = ids.dtype;
    gather.op = static_cast<uint32_t>(op);
    gather.height = bounded(tall.shape[0], bounds_);
    gather.width = bounded(elements(tall.shape.data() + 1, tall.shape.size() - 1), bounds_);
    gather.count = bounded(elements(ids.shape), bounds_);
    if (op == TN_GATHER_SUM) gather.segments = bounded(graph_.spec(node_.outputs[0]).shape[0], bounds_);
    prepare_by(TN_GATHER, &tn_gather_table::prepare, &gather);
  }

  template <typename Site>
  using PreparePacked = tn_status (*tn_packed_gemm_table::*)(void*, const tn_services*, const tn_errors*, const Site*,
                                                             tn_prepared*);
  // The table is the device's own: packed_bytes asks no provider.
  template <typename Site>
  void prepare_packed(PreparePacked<Site> function, const Site& site) {
    const auto* const table = device_.primitives<tn_packed_gemm_table>(TN_PACKED_GEMM);
    prepared_.prepare(device_.origin(), errors_, table->*function, device_.instance(),
                      device_.services_of(device_.origin()), errors_.get(), &site);
    kernel_ = device_.origin().plugin;
  }

  // Returns the grid of a value: the product of its dimensions but the last, and the last.
  [[nodiscard]] std::pair<Dim, Dim> grid_of(ValueId value) const {
    const Shape& shape = graph_.spec(value).shape;
    return {bounded(elements(shape.data(), shape.size() - 1), bounds_), bounded(shape.back(), bounds_)};
  }

  // Refuses values whose elements share bytes: primitives address single elements.
  void require_whole_bytes() const {
    for (const auto* values : {&node_.inputs, &node_.outputs})
      for (const ValueId value : *values)
        if (value != kNoValue && !has_whole_bytes(graph_.spec(value).dtype))
          fail(TN_UNSUPPORTED, ComponentName{errors_.who()}, "it has a value of ", to_string(graph_.spec(value)),
               "; only native kernels compute with elements of less than 8 bits");
  }

  template <typename Table, typename Site>
  void prepare_by(const char* id,
                  tn_status (*Table::*function)(void*, const tn_services*, const tn_errors*, const Site*, tn_prepared*),
                  const Site* site) {
    kernel_ = prepare_primitive(device_, id, function, site, errors_, prepared_);
  }

  const Graph& graph_;
  const Node& node_;
  const std::vector<int64_t>& bounds_;
  Device& device_;
  Prepared& prepared_;
  ErrorSink& errors_;
  std::string kernel_;
};

}  // namespace

std::string prepare_call(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds, Device& device,
                         Prepared& prepared, ErrorSink& errors) {
  return CallPreparer(graph, node, bounds, device, prepared, errors).prepare();
}

namespace {

// Whether a provider prepares the product alone, a site of the table `id`.
template <typename Table, typename Site>
bool is_provided(Device& device, const char* id, const Site& product) {
  for (const Device::Offer<Table>& offer : device.offers<Table>(id)) {
    if (offer.by == &device.origin() || offer.table->prepare == nullptr) continue;
    ErrorSink errors(offer.name, offer.by->tags);
    Prepared prepared;
    try {
      const std::shared_ptr<SharedObject> shared = device.shared_of(offer);
      prepared.use(shared);
      prepared.prepare(*offer.by, errors, offer.table->prepare, device.instance_of(shared.get()),
                       device.services_of(*offer.by), errors.get(), &product);
      return true;
    } catch (const Error& error) {
      if (error.code() != TN_UNSUPPORTED) throw;
    }
  }
  return false;
}

// Whether a table of calls that do the work of several calls has this one rather than the tables of these calls.
// provided: whether a provider has a call among these for itself.
template <typename Table, typename Site, typename Provided>
bool prefers(Device& device, const char* id, const Site& site, const Provided& provided) {
  for (const Device::Offer<Table>& offer : device.offers<Table>(id)) {
    if (offer.table->supports == nullptr || offer.table->prepare == nullptr) continue;
    if (newer_opcode(*offer.table, site).op != 0) continue;
    if (offer.by == &device.origin() && provided()) return false;
    ErrorSink errors(device.who(), offer.by->tags);
    try {
      const std::shared_ptr<SharedObject> shared = device.shared_of(offer);
      const TaggedFunction supports = {Tag::kSetup, "supports"};
      const SetupLock setup = lock_setup(*offer.by, supports);
      const auto entered = shared == nullptr ? std::unique_lock<std::mutex>() : shared->enter();
      errors.check(call_plugin(*offer.by, device.who(), supports, offer.table->supports,
                               device.instance_of(shared.get()), errors.get(), &site));
      return true;
    } catch (const Error& error) {
      if (error.code() != TN_UNSUPPORTED) throw;
    }
  }
  return false;
}

}  // namespace

bool prefers_epilogue(Device& device, const Graph& graph, const std::vector<int64_t>& bounds, const Node& product) {
  const PointwiseSite site = epilogue_site(graph, product, bounds);
  const int32_t number = product.epilogue->product;
  if (product.is<Conv>()) {
    const tn_conv conv = conv_of(graph, product, bounds);
    const tn_conv_epilogue epilogue = {sizeof epilogue, number, &conv, site.get()};
    return prefers<tn_conv_epilogue_table>(device, TN_CONV_EPILOGUE, epilogue,
                                           [&] { return is_provided<tn_conv_table>(device, TN_CONV, conv); });
  }
  const tn_gemm gemm = gemm_of(graph, product, *product.as<Gemm>(), bounds);
  const tn_gemm_epilogue epilogue = {sizeof epilogue, number, &gemm, site.get()};
  return prefers<tn_gemm_epilogue_table>(device, TN_GEMM_EPILOGUE, epilogue,
                                         [&] { return is_provided<tn_gemm_table>(device, TN_GEMM, gemm); });
}

bool prefers_rows(Device& device, const Graph& graph, const std::vector<int64_t>& bounds, const Node& node) {
  if (node.is<Coalesce>()) {
    const CoalesceProductsSite products(graph, node, bounds);
    return prefers<tn_coalesce_products_table>(device, TN_COALESCE_PRODUCTS, products.site, [] { return false; });
  }
  const GatherGemmSite both(graph, node, bounds);
  return prefers<tn_gather_gemm_table>(device, TN_GATHER_GEMM, both.site,
                                       [&] { return is_provided<tn_gemm_table>(device, TN_GEMM, both.gemm); });
}

uint64_t packed_bytes(Device& device, const Graph& graph, const std::vector<int64_t>& bounds, const Node& product) {
  const auto* const table = device.primitives<tn_packed_gemm_table>(TN_PACKED_GEMM);
  if (table == nullptr || (product.epilogue && table->prepare_epilogue == nullptr)) return 0;
  const Gemm& gemm = *product.as<Gemm>();
  if ((gemm.flags & TN_TRANSPOSE_A) != 0 || graph.spec(product.inputs[0]).shape.size() != 2) return 0;
  const tn_gemm site = gemm_of(graph, product, gemm, bounds);
  if (is_provided<tn_gemm_table>(device, TN_GEMM, site)) return 0;
  uint64_t bytes = 0;
  ErrorSink errors(device.who(), device.origin().tags);
  try {
    errors.check(call_plugin(device.origin(), device.who(), {Tag::kSetup, "packed_bytes"}, table->packed_bytes,
                             device.instance(), errors.get(), &site, &bytes));
  } catch (const Error& error) {
    if (error.code() != TN_UNSUPPORTED) throw;
    return 0;
  }
  constexpr uint64_t kMost = uint64_t{1} << 46;
  if (bytes == 0)
    fail(TN_PLUGIN_FAULT, ComponentName{device.who()}, "it packs a matrix into 0 bytes; expected 1 or more");
  if (bytes > kMost)
    fail(TN_INVALID, ComponentName{device.who()}, "it packs a matrix of this size into ", bytes, " bytes; at most ",
         kMost);
  return bytes;
}

}  // namespace tenon::host
