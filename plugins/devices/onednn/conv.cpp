// "tenon.conv/1". A primitive handles one sample, or a band of its rows, so that the bits of a sample follow from it
// alone; a fixed number of tasks takes the bands. The gradients of weights are summed in a fixed number of parts, each
// in chunks of a fixed number of samples, and the parts in their order. The order of the weights that oneDNN prefers is
// made in each call, since the weights change from step to step. All memory is the host's workspace; oneDNN itself
// allocates the list of a primitive's arguments, and OpenMP once for each thread its settings.
// SPDX-License-Identifier: Apache-2.0
#include "conv.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "choice.h"
#include "layout.h"
#include "primitive.h"

namespace tenon::onednn {

namespace {

constexpr int64_t kTasks = 16;             // that compute bands, each with memory of its own
constexpr int64_t kTasksBytes = 64 << 20;  // of the memory of all tasks
constexpr int64_t kParts = 8;              // of the sums of weights at most
constexpr int64_t kPartsBytes = 20 << 20;  // of all parts: adding large parts takes as long as computing them
constexpr int64_t kChunks[] = {16, 4, 1};  // samples of the primitives that sum weights
constexpr int64_t kSumPiece = 4096;        // elements of weights that a task sums
constexpr int64_t kElement = sizeof(float);

int64_t lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// What a primitive reads and writes in each task. The weights of all tasks of TN_CONV_RESULTS and TN_CONV_IMAGES are
// one memory.
struct Operands {
  Memory images, results, weights, scratch;
};
struct Step {
  Primitive primitive;
  int64_t samples;
  std::vector<Operands> tasks;
};

struct Binding {
  const Library* library;
  Problem problem;
  int64_t images, results, weights;  // elements: of a sample, of a sample, of all
  std::vector<Band> bands;
  std::vector<Step> steps;  // by Band::rows; of TN_CONV_WEIGHTS by descending number of samples
  std::vector<Stream> streams;
  int64_t tasks;         // or parts
  int64_t target_bytes;  // of a band that is added
  int64_t scratch_bytes, ordered_bytes;
  std::optional<Primitive> reorder;  // the weights to or from oneDNN's order
  Memory plain, ordered, reorder_scratch;

  [[nodiscard]] bool sums() const { return problem.op == TN_CONV_WEIGHTS; }
};

struct Run {
  const Binding* binding;
  float* images;
  float* results;
  float* weights;
  uint8_t* ordered;  // the weights in oneDNN's order; of TN_CONV_WEIGHTS the parts, each with a chunk's sums behind it
  uint8_t* targets;  // by task
  uint8_t* plain;    // weights that are added
  bool add;
  int64_t samples, tasks;
  mutable std::atomic<int> failed{dnnl_success};

  void note(dnnl_status_t status) const {
    if (status != dnnl_success) failed.store(status, std::memory_order_relaxed);
  }
};

void point(const Library& library, const Memory& memory, void* to) { library.memory_set_data_handle(memory.get(), to); }

void add_to(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

void reorder(const Run& run) {
  const Binding& b = *run.binding;
  const OneThread one(*b.library);
  auto* const from = b.sums() ? b.ordered.get() : b.plain.get();
  auto* const to = b.sums() ? b.plain.get() : b.ordered.get();
  run.note(b.reorder->execute(
      b.streams[0].get(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, b.reorder_scratch.get()}}));
}

// Bands of samples.
void convolve(const Run& run, int64_t index) {
  const Binding& b = *run.binding;
  const Library& library = *b.library;
  const OneThread one(library);
  const bool forward = b.problem.op == TN_CONV_RESULTS;
  const auto count = static_cast<int64_t>(b.bands.size());
  const int64_t all = run.samples * count;
  auto* const sums = reinterpret_cast<float*>(run.targets + index * b.target_bytes);
  for (int64_t i = all * index / run.tasks; i < all * (index + 1) / run.tasks; ++i) {
    const int64_t sample = i / count;
    const Band& band = b.bands[static_cast<size_t>(i % count)];
    const Step& step = b.steps[band.rows];
    const Operands& of = step.tasks[static_cast<size_t>(index)];
    float* images = run.images + sample * b.images + band.images;
    float* results = run.results + sample * b.results + band.results;
    float* const target = forward ? results : images;
    if (run.add) (forward ? results : images) = sums;
    point(library, of.images, images);
    point(library, of.results, results);
    run.note(step.primitive.execute(b.streams[static_cast<size_t>(index)].get(),
                                    {{forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, of.images.get()},
                                     {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, of.results.get()},
                                     {DNNL_ARG_WEIGHTS, b.ordered.get()},
                                     {DNNL_ARG_SCRATCHPAD, of.scratch.get()}}));
    if (!run.add) continue;
    const int argument = forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC;
    add_to(target, sums, step.primitive.bytes(argument) / kElement);
  }
}

// Part `index` of the sums of weights.
void sum_part(const Run& run, int64_t index) {
  const Binding& b = *run.binding;
  const Library& library = *b.library;
  const OneThread one(library);
  auto* const sums = reinterpret_cast<float*>(run.ordered + 2 * index * b.ordered_bytes);
  float* const chunk = sums + b.ordered_bytes / kElement;
  const int64_t first = run.samples * index / run.tasks, last = run.samples * (index + 1) / run.tasks;
  int64_t sample = first;
  for (const Step& step : b.steps)
    for (; last - sample >= step.samples; sample += step.samples) {
      const Operands& of = step.tasks[static_cast<size_t>(index)];
      point(library, of.images, run.images + sample * b.images);
      point(library, of.results, run.results + sample * b.results);
      point(library, of.weights, sample == first ? sums : chunk);
      run.note(step.primitive.execute(b.streams[static_cast<size_t>(index)].get(),
                                      {{DNNL_ARG_SRC, of.images.get()},
                                       {DNNL_ARG_DIFF_DST, of.results.get()},
                                       {DNNL_ARG_DIFF_WEIGHTS, of.weights.get()},
                                       {DNNL_ARG_SCRATCHPAD, of.scratch.get()}}));
      if (sample != first) add_to(sums, chunk, b.ordered_bytes / kElement);
    }
}

// Adds the parts of some weights to those of the first part, in their order.
void sum_parts(const Run& run, int64_t piece) {
  const Binding& b = *run.binding;
  const int64_t elements = b.ordered_bytes / kElement;
  const int64_t first = piece * kSumPiece, count = std::min(kSumPiece, elements - first);
  auto* const sums = reinterpret_cast<float*>(run.ordered) + first;
  for (int64_t part = 1; part < run.tasks; ++part) add_to(sums, sums + 2 * part * elements, count);
}

void run_task(void* argument, int32_t phase, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  if (!run.binding->sums()) return phase == 0 ? reorder(run) : convolve(run, index);
  if (phase == 0) return sum_part(run, index);
  if (phase == 1) return sum_parts(run, index);
  reorder(run);
  if (run.add) add_to(run.weights, reinterpret_cast<float*>(run.plain), run.binding->weights);
}

// Points all memory that stays the same in this run.
void point_all(const Run& run, uint8_t* scratch) {
  const Binding& b = *run.binding;
  const OneThread one(*b.library);  // pointing clears what oneDNN pads
  point(*b.library, b.plain, b.sums() && run.add ? static_cast<void*>(run.plain) : run.weights);
  point(*b.library, b.ordered, run.ordered);
  point(*b.library, b.reorder_scratch, scratch);
  for (const Step& step : b.steps)
    for (size_t i = 0; i < step.tasks.size(); ++i)
      point(*b.library, step.tasks[i].scratch, scratch + static_cast<int64_t>(i) * b.scratch_bytes);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const Binding& b = *static_cast<const Binding*>(self);
  const tn_errors* const errors = execution->errors;
  if (call->inputs_count != 2 || call->outputs_count != 1 || call->inputs[0] == nullptr || call->inputs[1] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "a convolution needs two inputs and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a convolution without its output");
  Run run = {};
  run.binding = &b;
  run.samples = tn_dim_value(&b.problem.samples, execution->symbols);
  if (run.samples < 0) return tn_fail(errors, TN_MISUSE, nullptr, "a convolution of a negative number of samples");
  run.add = call->requests[0] == TN_REQUEST_ADD;
  const auto data = [](const tn_tensor* tensor) { return reinterpret_cast<float*>(tn_data(tensor)); };
  float* const operands[3] = {data(call->inputs[0]), data(call->inputs[1]), data(call->outputs[0])};
  const bool forward = b.problem.op == TN_CONV_RESULTS;
  run.images = forward || b.sums() ? operands[0] : operands[2];
  run.weights = operands[b.sums() ? 2 : 1];
  run.results = forward ? operands[2] : operands[b.sums() ? 1 : 0];
  auto* memory = static_cast<uint8_t*>(call->workspace);
  const auto take = [&](int64_t bytes) {
    uint8_t* const start = memory;
    memory += bytes;
    return start;
  };
  run.ordered = take(b.ordered_bytes * (b.sums() ? 2 * b.tasks : 1));
  run.targets = take(b.target_bytes * b.tasks);
  run.plain = take(b.sums() ? lines(b.weights * kElement) : 0);
  const tn_parallel* const parallel = execution->parallel;
  run.tasks = std::min(b.tasks, run.samples * static_cast<int64_t>(b.bands.size()));
  if (run.tasks == 0) {
    if (b.sums() && !run.add) std::memset(run.weights, 0, static_cast<size_t>(b.weights * kElement));
    return TN_OK;
  }
  point_all(run, memory);
  const int64_t pieces = (b.ordered_bytes / kElement + kSumPiece - 1) / kSumPiece;
  const int64_t sizes[3] = {b.sums() ? run.tasks : 1, b.sums() ? pieces : run.tasks, 1};
  parallel->phases(parallel->self, b.sums() ? 3 : 2, sizes, &run_task, &run);
  if (run.failed.load() == dnnl_success) return TN_OK;
  return tn_fail(errors, run.failed.load() == dnnl_out_of_memory ? TN_OUT_OF_MEMORY : TN_INTERNAL, nullptr,
                 "oneDNN failed to execute a convolution");
}

void destroy(void* self) { delete static_cast<Binding*>(self); }

// Makes the primitives. Generic code of oneDNN, and its sums by products of matrices, which allocate, are refused.
void make_steps(Binding& b) {
  const Library& library = *b.library;
  Bands bands = bands_of(b.problem);
  b.bands = std::move(bands.bands);
  for (const Rows& rows : bands.rows)
    for (const int64_t samples : kChunks) {
      if (samples > 1 && !b.sums()) continue;
      Step step = {Primitive(library, describe(library, b.problem, rows, samples)), samples, {}};
      const std::string by = step.primitive.implementation();
      if (by.rfind("jit", 0) != 0 && by.rfind("brg", 0) != 0)
        throw tn::Failure(TN_UNSUPPORTED, "", "oneDNN has only \"" + by + "\" for this convolution");
      b.steps.push_back(std::move(step));
    }
}

void make_memory_objects(Binding& b) {
  const Library& library = *b.library;
  const bool forward = b.problem.op == TN_CONV_RESULTS;
  const int images = forward || b.sums() ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC;
  const int results = forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
  const int weights = b.sums() ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
  for (const Step& step : b.steps) {
    b.scratch_bytes = std::max(b.scratch_bytes, lines(step.primitive.bytes(DNNL_ARG_SCRATCHPAD)));
    if (!b.sums()) b.target_bytes = std::max(b.target_bytes, lines(step.primitive.bytes(forward ? results : images)));
  }
  const dnnl_memory_desc_t& ordered = b.steps[0].primitive.form(weights);
  b.ordered_bytes = lines(b.steps[0].primitive.bytes(weights));
  const int64_t each = b.scratch_bytes + (b.sums() ? 2 * b.ordered_bytes : b.target_bytes);
  const int64_t most = b.sums() ? std::clamp<int64_t>(kPartsBytes / b.ordered_bytes, 1, kParts) : kTasks;
  b.tasks = std::clamp<int64_t>(kTasksBytes / std::max<int64_t>(each, 1), 1, most);
  for (Step& step : b.steps) {
    if (library.memory_desc_equal(&step.primitive.form(weights), &ordered) == 0)
      throw tn::Failure(TN_UNSUPPORTED, "", "oneDNN wants the weights in several orders");
    for (int64_t i = 0; i < b.tasks; ++i)
      step.tasks.push_back({make_memory(library, step.primitive.form(images)),
                            make_memory(library, step.primitive.form(results)), make_memory(library, ordered),
                            make_memory(library, step.primitive.form(DNNL_ARG_SCRATCHPAD))});
  }
  for (int64_t i = 0; i < b.tasks; ++i) b.streams.push_back(make_stream(library));
  const dnnl_memory_desc_t plain = weights_form(library, b.problem);
  b.reorder.emplace(library, b.sums() ? ordered : plain, b.sums() ? plain : ordered);
  b.plain = make_memory(library, plain);
  b.ordered = make_memory(library, ordered);
  b.reorder_scratch = make_memory(library, b.reorder->form(DNNL_ARG_SCRATCHPAD));
}

tn_status prepare(void* device, const tn_services*, const tn_errors* errors, const tn_conv* conv,
                  tn_prepared* prepared) {
  return tn::guarded(errors, [&] {
    if (conv->dtype != TN_F32) throw tn::Failure(TN_UNSUPPORTED, "dtype", "oneDNN convolves float32 only");
    if (conv->op < TN_CONV_RESULTS || conv->op > TN_CONV_WEIGHTS)
      throw tn::Failure(TN_UNSUPPORTED, "op", "oneDNN does not offer this form of a convolution");
    const auto& library = *static_cast<const Library*>(device);
    const Problem problem = {conv->op, conv->samples, conv->channels, conv->filters, conv->groups, *conv->window};
    if (!is_faster(problem))
      throw tn::Failure(TN_UNSUPPORTED, "", "the device cpu itself is faster for images of this shape");
    const OneThread one(library);
    // NOLINTNEXTLINE(modernize-make-unique): an aggregate
    auto binding = std::unique_ptr<Binding>(new Binding{&library,
                                                        problem,
                                                        problem.image_elements(),
                                                        problem.result_elements(),
                                                        problem.weight_elements(),
                                                        {},
                                                        {},
                                                        {},
                                                        0,
                                                        0,
                                                        0,
                                                        0,
                                                        std::nullopt,
                                                        {nullptr, library.memory_destroy},
                                                        {nullptr, library.memory_destroy},
                                                        {nullptr, library.memory_destroy}});
    Binding& b = *binding;
    make_steps(b);
    make_memory_objects(b);
    const int64_t scratch = std::max(b.scratch_bytes * b.tasks, lines(b.reorder->bytes(DNNL_ARG_SCRATCHPAD)));
    prepared->workspace_bytes =
        static_cast<uint64_t>(b.ordered_bytes * (b.sums() ? 2 * b.tasks : 1) + b.target_bytes * b.tasks + scratch +
                              (b.sums() ? lines(b.weights * kElement) : 0));
    prepared->traits = 0;
    prepared->run = &run;
    prepared->destroy = &destroy;
    prepared->binding = binding.release();
  });
}

}  // namespace

const tn_conv_table conv_table = {sizeof(tn_conv_table), 0, &prepare};

}  // namespace tenon::onednn
