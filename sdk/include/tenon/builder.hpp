/* Tenon SDK for C++17: recording a layer's body. SPDX-License-Identifier: MIT */
#ifndef TENON_BUILDER_HPP
#define TENON_BUILDER_HPP

#include <tenon/builder.h>

#include <tenon/base.hpp>
#include <tenon/expression.hpp>

namespace tn {

// A value in the recording. Copies are the same value; valid until lower returns.
class Tensor {
 public:
  Spec spec() const {
    const tn_spec* const found = builder_->spec(builder_->self, ref_);
    if (found == nullptr) throw Reported(builder_->status(builder_->self));
    return Spec(*found);
  }
  // The same elements in another shape.
  Tensor view(const Spec& shape) const {
    const tn_spec spec = shape.get();
    return made(builder_, builder_->view(builder_->self, ref_, spec.dims, spec.rank));
  }
  tn_ref ref() const { return ref_; }

 private:
  friend class Builder;
  Tensor(const tn_builder* builder, tn_ref ref) : builder_(builder), ref_(ref) {}
  // Throws if the host reported a failure.
  static Tensor made(const tn_builder* builder, tn_ref ref) {
    if (ref >= 0) return {builder, ref};
    const tn_status status = builder->status(builder->self);
    if (status != TN_OK) throw Reported(status);
    throw Failure(TN_PLUGIN_FAULT, "", "lower asks for a value that is not there");
  }

  const tn_builder* builder_;
  tn_ref ref_;
};

// Records primitives, which tenon/builder.h documents. A call that fails throws; the host has the reason.
class Builder {
 public:
  explicit Builder(const tn_builder& builder) : builder_(&builder) {}

  // True if the machine trains; false for inference, where layers such as dropout do nothing.
  bool training() const { return builder_->training != 0; }

  Tensor input(uint32_t port, uint32_t index = 0) { return made(builder_->input(builder_->self, port, index)); }
  // Empty if an optional input is not connected.
  std::optional<Tensor> optional_input(uint32_t port, uint32_t index = 0) {
    const tn_ref ref = builder_->input(builder_->self, port, index);
    if (ref < 0 && builder_->status(builder_->self) == TN_OK) return std::nullopt;
    return made(ref);
  }
  Tensor parameter(uint32_t index) { return made(builder_->parameter(builder_->self, index)); }
  Tensor buffer(uint32_t index) { return made(builder_->buffer(builder_->self, index)); }
  // A carried state as the minibatch before left it, or zeros.
  Tensor carried(uint32_t index) { return made(builder_->carried(builder_->self, index)); }

  // alpha * op(a) op(b); flags: TN_TRANSPOSE_A, TN_TRANSPOSE_B.
  Tensor gemm(const Tensor& a, const Tensor& b, uint32_t flags = 0, double alpha = 1) {
    return made(builder_->gemm(builder_->self, a.ref(), b.ref(), flags, alpha));
  }
  Tensor gather(const Tensor& table, const Tensor& ids) {
    return made(builder_->gather(builder_->self, table.ref(), ids.ref()));
  }
  Tensor scatter_add(const Tensor& rows, const Tensor& ids, const Dim& height) {
    return made(builder_->scatter_add(builder_->self, rows.ref(), ids.ref(), &height));
  }
  // Concatenates values along an axis, which is constant.
  Tensor concat(const std::vector<Tensor>& values, int32_t axis) {
    std::vector<tn_ref> refs;
    for (const Tensor& value : values) refs.push_back(value.ref());
    return made(builder_->concat(builder_->self, refs.data(), static_cast<uint32_t>(refs.size()), axis));
  }
  // Elements [start, start + length) along an axis, which is constant.
  Tensor slice(const Tensor& value, int32_t axis, int64_t start, int64_t length) {
    return made(builder_->slice(builder_->self, value.ref(), axis, start, length));
  }
  // Adds zeros before and after the elements along an axis, which is constant.
  Tensor pad(const Tensor& value, int32_t axis, int64_t before, int64_t after) {
    return made(builder_->pad(builder_->self, value.ref(), axis, before, after));
  }
  // Dimension i of the result is dimension axes[i] of the value.
  Tensor transpose(const Tensor& value, const std::vector<int32_t>& axes) {
    return made(builder_->transpose(builder_->self, value.ref(), axes.data(), static_cast<int32_t>(axes.size())));
  }

#if TN_TARGET_MINOR >= 3
  // The positions of the first `count` elements of each row in sorted order, int64; -1: of all.
  template <uint16_t kMinor = 3>
  Tensor argsort(const Tensor& value, uint32_t flags = 0, int64_t count = -1) {
    require<kMinor>();
    return made(builder_->argsort(builder_->self, value.ref(), flags, count));
  }
  // The sums of the elements of each row up to each element; flags: TN_SUM_*.
  template <uint16_t kMinor = 3>
  Tensor prefix_sum(const Tensor& value, uint32_t flags = 0) {
    require<kMinor>();
    return made(builder_->prefix_sum(builder_->self, value.ref(), flags));
  }

  // TN_CONV_*: makes one of images, weights and results from the other two.
  template <uint16_t kMinor = 3>
  Tensor conv(int32_t op, const tn_window& window, int64_t groups, const Tensor& a, const Tensor& b) {
    require<kMinor>();
    return made(builder_->conv(builder_->self, op, &window, groups, a.ref(), b.ref()));
  }
  // TN_POOL_SUM and TN_POOL_SPREAD.
  template <uint16_t kMinor = 3>
  Tensor pool(int32_t op, const tn_window& window, const Tensor& value) {
    require<kMinor>();
    tn_ref results[2] = {-1, -1};
    check(builder_->pool(builder_->self, op, &window, value.ref(), -1, results));
    return made(results[0]);
  }
  // TN_POOL_SCATTER and TN_POOL_TAKE.
  template <uint16_t kMinor = 3>
  Tensor pool(int32_t op, const tn_window& window, const Tensor& value, const Tensor& positions) {
    require<kMinor>();
    tn_ref results[2] = {-1, -1};
    check(builder_->pool(builder_->self, op, &window, value.ref(), positions.ref(), results));
    return made(results[0]);
  }
  // The maximum of each window, and its position in the image.
  template <uint16_t kMinor = 3>
  std::pair<Tensor, Tensor> pool_max(const tn_window& window, const Tensor& value) {
    require<kMinor>();
    tn_ref results[2] = {-1, -1};
    check(builder_->pool(builder_->self, TN_POOL_MAX, &window, value.ref(), -1, results));
    return {made(results[0]), made(results[1])};
  }
  template <uint16_t kMinor = 3>
  Tensor resize(const tn_resize& resize, const Tensor& value) {
    require<kMinor>();
    return made(builder_->resize(builder_->self, &resize, value.ref()));
  }
#endif

  // The value with two dimensions exchanged; itself if they are one.
  Tensor exchange(const Tensor& value, int32_t a, int32_t b) {
    if (a == b) return value;
    std::vector<int32_t> axes;
    for (int32_t i = 0; i < value.spec().rank(); ++i) axes.push_back(i == a ? b : i == b ? a : i);
    return transpose(value, axes);
  }

  // A primitive over the segments of the ragged dimension `rows`: TN_SEGMENT_*.
  Tensor segment(int32_t op, const Tensor& value, const Dim& rows, int64_t by = 0) {
    return made(builder_->segment(builder_->self, op, value.ref(), &rows, by));
  }
  // Without a value: TN_SEGMENT_POSITION, _LENGTH, _START.
  Tensor segment(int32_t op, const Dim& rows) { return made(builder_->segment(builder_->self, op, -1, &rows, 0)); }
  // The values of a sparse input's entries; empty if all are 1.
  std::optional<Tensor> weights(const Tensor& sparse) {
    const tn_ref ref = builder_->weights(builder_->self, sparse.ref());
    if (ref < 0 && builder_->status(builder_->self) == TN_OK) return std::nullopt;
    return made(ref);
  }

#if TN_TARGET_MINOR >= 3
  // A scan, a body over the steps of sequences: begin, the primitives of the body, end. Returns the first dimension of
  // its values.
  template <uint16_t kMinor = 3>
  Dim scan_begin(const Dim& rows, uint32_t flags = 0) {
    require<kMinor>();
    Dim steps;
    check(builder_->scan_begin(builder_->self, &rows, flags, &steps));
    return steps;
  }
  // The rows of sequences, or a value of each sequence, as the steps read them.
  template <uint16_t kMinor = 3>
  Tensor scan_input(const Tensor& value) {
    require<kMinor>();
    return made(builder_->scan_input(builder_->self, value.ref()));
  }
  // What the step before left, of the shape of one step; without `initial` the first step reads zeros.
  template <uint16_t kMinor = 3>
  Tensor scan_memory(const Spec& shape, const std::optional<Tensor>& initial = std::nullopt) {
    require<kMinor>();
    const tn_spec spec = shape.get();
    return made(builder_->scan_memory(builder_->self, &spec, initial ? initial->ref() : -1));
  }
  template <uint16_t kMinor = 3>
  void scan_next(const Tensor& memory, const Tensor& next) {
    require<kMinor>();
    check(builder_->scan_next(builder_->self, memory.ref(), next.ref()));
  }
  template <uint16_t kMinor = 3>
  void scan_end() {
    require<kMinor>();
    check(builder_->scan_end(builder_->self));
  }
  // After the end: what the last step of each sequence left in a memory.
  template <uint16_t kMinor = 3>
  Tensor scan_last(const Tensor& memory) {
    require<kMinor>();
    return made(builder_->scan_last(builder_->self, memory.ref()));
  }
  // The values of all steps, in the order of the rows.
  template <uint16_t kMinor = 3>
  Tensor scan_output(const Tensor& value) {
    require<kMinor>();
    return made(builder_->scan_output(builder_->self, value.ref()));
  }
#endif

  // Number `index` of the ragged dimensions that plan declared.
  Dim rows(uint32_t index) {
    Dim rows;
    check(builder_->rows(builder_->self, index, &rows));
    return rows;
  }
  // A constant tensor of floats in the compute type, or of integers; the shape is constant, in row-major order.
  Tensor constant(const Spec& shape, const std::vector<double>& values) {
    return constant(shape.as(TN_COMPUTE), values.data(), values.size());
  }
  Tensor constant(const Spec& shape, const std::vector<int64_t>& values) {
    return constant(shape.as(TN_I64), values.data(), values.size());
  }

  // Applies a program: the first `leading` dimensions are rows. gradient: the author's own; null: derived by the host.
  std::vector<Tensor> pointwise(const Program& program, std::initializer_list<Tensor> inputs, int32_t leading = 1,
                                const GradientProgram* gradient = nullptr) {
    return pointwise(program, std::vector<Tensor>(inputs), leading, gradient);
  }
  std::vector<Tensor> pointwise(const Program& program, const std::vector<Tensor>& inputs, int32_t leading = 1,
                                const GradientProgram* gradient = nullptr) {
    std::vector<tn_ref> refs;
    for (const Tensor& input : inputs) refs.push_back(input.ref());
    tn_pointwise call = {};
    call.size = sizeof call;
    call.leading = leading;
    call.program = program.get();
    call.inputs = refs.data();
    call.gradient = gradient == nullptr ? nullptr : gradient->get();
    if (refs.size() != call.program->inputs_count)
      throw std::invalid_argument("a program of " + std::to_string(call.program->inputs_count) +
                                  " inputs is applied to " + std::to_string(refs.size()) + " values");
    std::vector<tn_ref> made_refs(call.program->outputs_count, -1);
    check(builder_->pointwise(builder_->self, &call, made_refs.data()));
    std::vector<Tensor> outputs;
    for (const tn_ref ref : made_refs) outputs.push_back(made(ref));
    return outputs;
  }

  void output(uint32_t port, const Tensor& value) { check(builder_->output(builder_->self, port, value.ref())); }
  void buffer_next(uint32_t index, const Tensor& value) {
    check(builder_->buffer_next(builder_->self, index, value.ref()));
  }
  void carried_next(uint32_t index, const Tensor& value) {
    check(builder_->carried_next(builder_->self, index, value.ref()));
  }
  void state(uint32_t index, const Tensor& value) { check(builder_->state(builder_->self, index, value.ref())); }

 private:
  Tensor made(tn_ref ref) { return Tensor::made(builder_, ref); }
  Tensor constant(const Spec& spec, const void* data, size_t count) {
    int64_t elements = 1;
    for (int32_t i = 0; i < spec.rank(); ++i) elements *= spec[i].is_constant() ? spec[i].offset : -1;
    if (elements < 0 || static_cast<size_t>(elements) != count)
      throw std::invalid_argument("a constant of " + std::to_string(count) + " values for another shape");
    const tn_spec view = spec.get();
    return made(builder_->constant(builder_->self, &view, data));
  }

  const tn_builder* builder_;
};

}  // namespace tn
#endif
