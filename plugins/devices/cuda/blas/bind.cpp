// Calls of products by cublasLt. SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "blas.h"
#include "epilogue.h"
#include "product.h"
#include "rounding.h"
#include "runtime/device.h"
#include "runtime/kernels.h"

namespace tenon::cuda {

namespace {

uint64_t rounded_up(uint64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

// The factors of a product in bfloat16, in the workspace.
class Rounding {
 public:
  Rounding(Device& device, const tn_gemm& gemm) {
    bind(device, rounding_kernels(gemm), &prepared_);
    const int64_t deep = product_of(bound_of(gemm.batch, "products"), bound_of(gemm.k, "terms"));
    b_at_ = bytes_of(product_of(deep, bound_of(gemm.m, "rows")));
    bytes_ = b_at_ + bytes_of(product_of(deep, bound_of(gemm.n, "columns")));
  }
  ~Rounding() { prepared_.destroy(prepared_.binding); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

  [[nodiscard]] uint64_t workspace_bytes() const { return bytes_; }
  // Rounds the factors, the first two inputs of the call, and sets their addresses.
  void run(const tn_execution& execution, const tn_call& call, ProductOperands& operands) const {
    tn_tensor a = {}, b = {};
    operands.a = a.dl.data = call.workspace;
    operands.b = b.dl.data = static_cast<uint8_t*>(call.workspace) + b_at_;
    tn_tensor* const rounded[] = {&a, &b};
    constexpr uint8_t kRequests[] = {TN_REQUEST_WRITE, TN_REQUEST_WRITE};
    const tn_call rounding = {sizeof rounding, 2, 2, 0, call.inputs, rounded, kRequests, nullptr, 0};
    const tn_status status = prepared_.run(prepared_.binding, &execution, &rounding);
    if (status != TN_OK) throw tn::Reported(status);
  }

 private:
  static uint64_t bytes_of(int64_t elements) { return rounded_up(2 * static_cast<uint64_t>(elements)); }

  tn_prepared prepared_ = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  uint64_t b_at_ = 0, bytes_ = 0;
};

ProductForm form_of(const tn_gemm& gemm, Epilogue epilogue) {
  const bool is_float = gemm.dtype == TN_F32;
  ProductForm form;
  form.dtype = gemm.dtype;
  form.brain = is_float && gemm.precision == TN_PRECISION_BF16;
  form.tf32 = is_float && gemm.precision == TN_PRECISION_TF32;
  form.flags = gemm.flags;
  form.alpha = gemm.alpha;
  if (epilogue != Epilogue::kNone)
    form.epilogue = epilogue == Epilogue::kBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_RELU_BIAS;
  return form;
}

// Chooses the algorithm for the bounds. Returns whether the library knows the product.
bool choose(const Device& device, const tn_gemm& gemm, Product& product) {
  const ProductSize size = {bound_of(gemm.batch, "products"), bound_of(gemm.m, "rows"), bound_of(gemm.n, "columns"),
                            bound_of(gemm.k, "terms")};
  if (size.batch == 0 || size.m == 0 || size.n == 0 || size.k == 0) return true;
  const Current current(device.context());
  return product.choose(size);
}

// A prepared call. inputs: A, B, with an epilogue its bias; outputs: C, with an epilogue its result.
class Binding {
 public:
  Binding(Device& device, const Blas& blas, const tn_gemm& gemm, Epilogue epilogue);

  // Chooses the algorithm for the bounds. Returns whether the library knows the product.
  [[nodiscard]] bool choose() { return cuda::choose(device_, gemm_, with_epilogue_ ? *with_epilogue_ : product_); }
  [[nodiscard]] uint64_t workspace_bytes() const;
  [[nodiscard]] bool has_constant_size() const;
  void run(const tn_execution& execution, const tn_call& call);

 private:
  void check_operands(const tn_call& call) const;
  [[nodiscard]] ProductSize size_of(const tn_execution& execution) const;
  void fill(const ProductSize& size, const tn_call& call, const Stream& stream) const;

  Device& device_;
  const tn_gemm gemm_;
  const Epilogue epilogue_;
  Product product_;
  std::optional<Product> with_epilogue_;
  std::optional<Rounding> rounding_;
  const uint64_t library_bytes_;  // of the library's part of the workspace, the last one
};

Binding::Binding(Device& device, const Blas& blas, const tn_gemm& gemm, Epilogue epilogue)
    : device_(device),
      gemm_(gemm),
      epilogue_(epilogue),
      product_(blas, form_of(gemm, Epilogue::kNone)),
      library_bytes_(library_workspace_bytes(blas.workspace_bytes())) {
  if (product_.form().brain) rounding_.emplace(device, gemm);
  if (epilogue != Epilogue::kNone) with_epilogue_.emplace(blas, form_of(gemm, epilogue));
}

uint64_t Binding::workspace_bytes() const { return library_bytes_ + (rounding_ ? rounding_->workspace_bytes() : 0); }

bool Binding::has_constant_size() const {
  for (const tn_dim& dim : {gemm_.batch, gemm_.m, gemm_.n, gemm_.k})
    if (dim.symbol != TN_SYMBOL_NONE) return false;
  return true;
}

void Binding::check_operands(const tn_call& call) const {
  const uint32_t more = with_epilogue_ ? 1 : 0;
  if (call.inputs_count != 2 + more || call.outputs_count != 1 + more)
    throw tn::Failure(TN_MISUSE, "", "a call with another number of operands than it was prepared for");
  for (uint32_t i = 0; i < call.inputs_count; ++i)
    if (call.inputs[i] == nullptr) throw tn::Failure(TN_MISUSE, "inputs", "a call without one of its inputs");
  // A sum that is cut off at 0 is not what was there and the result.
  if (epilogue_ == Epilogue::kBiasRelu && call.requests[1] == TN_REQUEST_ADD)
    throw tn::Failure(TN_UNSUPPORTED, "outputs", "results of this call do not add on CUDA");
}

ProductSize Binding::size_of(const tn_execution& execution) const {
  const auto value = [&](const tn_dim& dim) { return tn_dim_value(&dim, execution.host_symbols); };
  const ProductSize size = {value(gemm_.batch), value(gemm_.m), value(gemm_.n), value(gemm_.k)};
  if (size.batch < 0 || size.m < 0 || size.n < 0 || size.k < 0)
    throw tn::Failure(TN_MISUSE, "", "a product of negative size");
  return size;
}

// A product of no terms, of which the library knows nothing. Has no epilogue.
void Binding::fill(const ProductSize& size, const tn_call& call, const Stream& stream) const {
  if (call.requests[0] == TN_REQUEST_ADD) return;
  const auto elements = static_cast<uint64_t>(product_of(product_of(size.batch, size.m), size.n));
  const auto to = reinterpret_cast<CUdeviceptr>(tn_data(call.outputs[0]));
  const Driver& driver = device_.driver();
  check(driver, driver.cuMemsetD8Async(to, 0, elements * tn_dtype_bytes(gemm_.dtype), stream.handle()),
        "cuMemsetD8Async");
}

void Binding::run(const tn_execution& execution, const tn_call& call) {
  check_operands(call);
  const ProductSize size = size_of(execution);
  const auto wanted = [&](uint32_t output) {
    return output < call.outputs_count && call.outputs[output] != nullptr && call.requests[output] != TN_REQUEST_NONE;
  };
  if ((!wanted(0) && !wanted(1)) || size.batch == 0 || size.m == 0 || size.n == 0) return;
  const Current current(device_.context());
  cuda::check(device_.driver(), current.call([] { return CUDA_SUCCESS; }), "cuCtxPushCurrent");
  const Stream& stream = device_.stream(execution.stream);
  if (size.k == 0) return fill(size, call, stream);
  ProductOperands operands = {tn_data(call.inputs[0]), tn_data(call.inputs[1]), nullptr, nullptr, false};
  if (rounding_) rounding_->run(execution, call, operands);
  void* const workspace = library_workspace(static_cast<uint8_t*>(call.workspace) + workspace_bytes() - library_bytes_);
  const auto multiply = [&](Product& product, uint32_t output) {
    operands.c = tn_data(call.outputs[output]);
    operands.adds = call.requests[output] == TN_REQUEST_ADD;
    product.enqueue(size, operands, stream, workspace);
  };
  // The library gives the product or what follows from it. Who wants both gets a call for each.
  if (wanted(0)) multiply(product_, 0);
  if (!wanted(1)) return;
  operands.bias = tn_data(call.inputs[2]);
  multiply(*with_epilogue_, 1);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  return tn::guarded(execution->errors, [&] { static_cast<Binding*>(self)->run(*execution, *call); });
}

void destroy(void* self) { delete static_cast<Binding*>(self); }

bool bind_product(Device& device, const tn_gemm& gemm, Epilogue epilogue, tn_prepared* prepared) {
  if (device.blas() == nullptr) return false;
  auto binding = std::make_unique<Binding>(device, *device.blas(), gemm, epilogue);
  if (!binding->choose()) return false;
  prepared->traits = binding->has_constant_size() ? TN_TRAIT_CAPTURABLE : TN_TRAIT_HOST_SIZES;
  // The library sums in another order for another number of rows. Nobody is promised that it does not with TRANSPOSE_A.
  if ((gemm.flags & TN_TRANSPOSE_A) == 0) prepared->traits |= TN_TRAIT_BATCH_VARIANT;
  prepared->workspace_bytes = binding->workspace_bytes();
  prepared->run = &run;
  prepared->destroy = &destroy;
  prepared->binding = binding.release();
  return true;
}

}  // namespace

bool bind_by_blas(Device& device, const tn_gemm& gemm, tn_prepared* prepared) {
  return bind_product(device, gemm, Epilogue::kNone, prepared);
}

bool knows_epilogue(const Device& device, const tn_gemm_epilogue& epilogue) {
  const Epilogue known = epilogue_of(epilogue);
  if (device.blas() == nullptr || known == Epilogue::kNone) return false;
  Product product(*device.blas(), form_of(*epilogue.gemm, known));
  return choose(device, *epilogue.gemm, product);
}

void bind_epilogue(Device& device, const tn_gemm_epilogue& epilogue, tn_prepared* prepared) {
  const Epilogue known = epilogue_of(epilogue);
  if (known == Epilogue::kNone || !bind_product(device, *epilogue.gemm, known, prepared))
    throw tn::Failure(TN_UNSUPPORTED, "program", "CUDA cannot run this program as an epilogue");
}

}  // namespace tenon::cuda
