// Runs the convolutions of cuDNN. SPDX-License-Identifier: Apache-2.0
#include "dnn.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tenon/base.hpp>

#include "conv_plan.h"
#include "runtime/device.h"
#include "runtime/kernels.h"

namespace tenon::cuda {

// The library, opened for a GPU, with the plans that it made. Its functions may be called by several threads.
class Dnn {
 public:
  Dnn(const Context& context, int capability) : context_(context) {
    const Current current(context_);
    cuda::check(context_.driver, current.call([] { return CUDA_SUCCESS; }), "cuCtxPushCurrent");
    functions_.check(functions_.cudnnCreate(&handle_), "cudnnCreate");
    target_ = {&functions_, handle_, nullptr, capability};
  }
  ~Dnn() {
    const Current current(context_);
    plans_.clear();
    functions_.cudnnDestroy(handle_);
  }
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  // The plan for a problem, on `engine` if it is not null; null if there is none. A new plan would end a capture:
  // throws if it is asked for first while `captures`.
  std::shared_ptr<const ConvPlan> plan(const ConvProblem& problem, const ConvEngine* engine, uint64_t most_workspace,
                                       bool captures) {
    std::vector<int64_t> key = problem.key();
    key.push_back(engine == nullptr ? -1 : engine->number);
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    if (captures)
      throw tn::Failure(TN_UNSUPPORTED, "",
                        "a convolution of " + std::to_string(problem.samples) + " samples is captured before it ran");
    const Current current(context_);
    std::optional<ConvPlan> made = engine == nullptr ? find_plan(target_, problem, most_workspace)
                                                     : plan_on(target_, problem, *engine, most_workspace);
    auto shared = made ? std::make_shared<const ConvPlan>(*std::move(made)) : nullptr;
    return plans_.emplace(std::move(key), std::move(shared)).first->second;
  }

  // Enqueues a plan's work. tensors: of the ids 1, 2 and 3.
  void execute(const ConvPlan& plan, CUstream stream, void* const (&tensors)[3], void* workspace) {
    Descriptor operands(functions_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    operands.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::vector<int64_t>{kImages, kWeights, kResults});
    operands.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, tensors);
    operands.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    operands.finalize();
    const std::lock_guard lock(mutex_);
    const Current current(context_);
    functions_.check(functions_.cudnnSetStream(handle_, stream), "cudnnSetStream");
    functions_.check(functions_.cudnnBackendExecute(handle_, plan.plan.handle(), operands.handle()),
                     "cudnnBackendExecute");
  }

 private:
  const Context& context_;
  const DnnFunctions functions_;
  cudnnHandle_t handle_ = nullptr;
  DnnTarget target_ = {};
  std::mutex mutex_;
  std::map<std::vector<int64_t>, std::shared_ptr<const ConvPlan>> plans_;
};

namespace {

constexpr uint64_t kMostWorkspace = uint64_t{256} << 20;
constexpr uintptr_t kAlignment = 16;

struct Binding {
  Device& device;
  std::shared_ptr<Dnn> dnn;
  ConvProblem problem;  // for the most samples, writing
  tn_dim samples;
  std::shared_ptr<const ConvPlan> most;  // the plan for it
  tn_prepared own;
};

bool is_aligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % kAlignment == 0; }

// The plan for the samples of this call, on the engine of the plan for the most of them; null: there is none, and the
// device's own kernels compute.
std::shared_ptr<const ConvPlan> plan_of(const Binding& binding, const Stream& stream, int64_t samples, bool adds) {
  ConvProblem problem = binding.problem;
  if (samples == problem.samples && !adds) return binding.most;
  problem.samples = samples;
  problem.adds = adds;
  auto plan = binding.dnn->plan(problem, &binding.most->engine, kMostWorkspace, stream.is_capturing());
  return plan != nullptr && plan->workspace_bytes <= binding.most->workspace_bytes ? plan : nullptr;
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const Binding& b = *static_cast<const Binding*>(self);
  const auto by_own_kernels = [&] { return b.own.run(b.own.binding, execution, call); };
  const int64_t samples = tn_dim_value(&b.samples, execution->host_symbols);
  if (samples < 0)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a convolution of a negative number of samples");
  // Sums of nothing, and calls that are wrong, which they report.
  if (samples == 0 || call->inputs_count != 2 || call->outputs_count != 1 || call->inputs[0] == nullptr ||
      call->inputs[1] == nullptr || call->outputs[0] == nullptr || call->requests[0] == TN_REQUEST_NONE)
    return by_own_kernels();
  void* const first = tn_data(call->inputs[0]);
  void* const second = tn_data(call->inputs[1]);
  void* const made = tn_data(call->outputs[0]);
  if (!is_aligned(first) || !is_aligned(second) || !is_aligned(made)) return by_own_kernels();
  const Stream& stream = b.device.stream(execution->stream);
  std::shared_ptr<const ConvPlan> plan;
  const tn_status status =
      tn::guarded(execution->errors, [&] { plan = plan_of(b, stream, samples, call->requests[0] == TN_REQUEST_ADD); });
  if (status != TN_OK) return status;
  if (plan == nullptr) return by_own_kernels();
  return tn::guarded(execution->errors, [&] {
    // As window.h orders them: images, weights, results, without the one that is made.
    const int32_t op = b.problem.op;
    void* const tensors[] = {op == TN_CONV_IMAGES ? made : first, op == TN_CONV_WEIGHTS ? made : second,
                             op == TN_CONV_RESULTS  ? made
                             : op == TN_CONV_IMAGES ? first
                                                    : second};
    b.dnn->execute(*plan, stream.handle(), tensors, library_workspace(call->workspace));
  });
}

void destroy(void* self) {
  auto* const binding = static_cast<Binding*>(self);
  binding->own.destroy(binding->own.binding);
  delete binding;
}

}  // namespace

std::shared_ptr<Dnn> open_dnn(const Context& context, int capability, std::string* why) {
  try {
    return std::make_shared<Dnn>(context, capability);
  } catch (const tn::Failure& failure) {
    *why = failure.what();
    return nullptr;
  }
}

void put_dnn_before(Device& device, const tn_conv& conv, tn_prepared* prepared) {
  const std::shared_ptr<Dnn>& dnn = device.dnn();
  if (dnn == nullptr || conv.dtype != TN_F32) return;
  const ConvProblem problem = {conv.op,       *conv.window, std::max<int64_t>(bound_of(conv.samples, "samples"), 1),
                               conv.channels, conv.filters, conv.groups};
  std::shared_ptr<const ConvPlan> plan = dnn->plan(problem, nullptr, kMostWorkspace, false);
  if (plan == nullptr) return;
  prepared->binding = new Binding{device, dnn, problem, conv.samples, plan, *prepared};
  prepared->traits = TN_TRAIT_HOST_SIZES;
  // An engine may choose the order of its sums by the number of samples. Gradients of weights sum over them.
  if (conv.op != TN_CONV_WEIGHTS) prepared->traits |= TN_TRAIT_BATCH_VARIANT;
  prepared->workspace_bytes = std::max(prepared->workspace_bytes, library_workspace_bytes(plan->workspace_bytes));
  prepared->run = &run;
  prepared->destroy = &destroy;
}

}  // namespace tenon::cuda
