// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <algorithm>

#include "primitive.h"

namespace tenon::onednn {

namespace {

constexpr int64_t kBands = 8;           // of a sample at most
constexpr double kBandWork = 8e6;       // multiplications of a band at least
constexpr int64_t kBandPositions = 64;  // and positions: fewer leave registers unused
constexpr const char* kForm = "oneDNN does not offer tensors of this form";

// The product of `first` and the sizes of the dimensions in space from `from` on.
int64_t space(const tn_window& window, const int64_t* sizes, int32_t from, int64_t first) {
  for (int32_t i = from; i < window.rank; ++i) first *= sizes[i];
  return first;
}
int64_t places(const tn_window& window, int32_t from, int64_t first) {
  for (int32_t i = from; i < window.rank; ++i) first *= tn_window_places(&window, i);
  return first;
}

// A tensor [samples, space..., channels], which oneDNN names with its channels second.
dnnl_memory_desc_t channels_last(const Library& library, int64_t samples, const std::vector<int64_t>& sizes,
                                 int64_t channels) {
  dnnl_dims_t dims = {samples, channels}, strides = {0, 1};
  int64_t stride = channels;
  for (size_t i = sizes.size(); i > 0; stride *= sizes[--i]) {
    dims[i + 1] = sizes[i - 1];
    strides[i + 1] = stride;
  }
  strides[0] = stride;
  dnnl_memory_desc_t form = {};
  check(library.memory_desc_init_by_strides(&form, static_cast<int>(sizes.size()) + 2, dims, dnnl_f32, strides), kForm);
  return form;
}

}  // namespace

int64_t Problem::image_elements() const { return space(window, window.images, 0, channels); }
int64_t Problem::result_elements() const { return places(window, 0, filters); }
int64_t Problem::weight_elements() const { return space(window, window.kernel, 0, filters * (channels / groups)); }
double Problem::work() const {
  return static_cast<double>(places(window, 0, 1)) * static_cast<double>(weight_elements());
}

Bands bands_of(const Problem& problem) {
  const tn_window& w = problem.window;
  const int64_t rows = tn_window_places(&w, 0);
  int64_t count = 1;
  if (problem.op == TN_CONV_RESULTS)
    count = std::clamp<int64_t>(
        std::min(static_cast<int64_t>(problem.work() / kBandWork), places(w, 0, 1) / kBandPositions), 1,
        std::min(kBands, rows));
  const int64_t height = w.dilation[0] * (w.kernel[0] - 1) + 1;
  Bands all;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = rows * i / count, last = rows * (i + 1) / count;
    // The window's rows [low, high), with zeros around the images.
    const int64_t low = first * w.stride[0] - w.before[0], high = (last - 1) * w.stride[0] - w.before[0] + height;
    const int64_t begin = count == 1 ? 0 : std::clamp<int64_t>(low, 0, w.images[0]);
    const int64_t end = count == 1 ? w.images[0] : std::clamp<int64_t>(high, begin, w.images[0]);
    const Rows band = {end - begin, last - first, count == 1 ? w.before[0] : begin - low,
                       count == 1 ? w.after[0] : high - end};
    const auto known = std::find(all.rows.begin(), all.rows.end(), band);
    all.bands.push_back({static_cast<size_t>(known - all.rows.begin()), space(w, w.images, 1, begin * problem.channels),
                         places(w, 1, first * problem.filters)});
    if (known == all.rows.end()) all.rows.push_back(band);
  }
  return all;
}

dnnl_memory_desc_t weights_form(const Library& library, const Problem& problem) {
  const tn_window& w = problem.window;
  const int64_t inner = problem.channels / problem.groups;
  const int group = problem.groups > 1 ? 1 : 0;  // oneDNN has a dimension for the groups only where there are some
  dnnl_dims_t dims = {}, strides = {};
  int64_t stride = inner;
  for (int32_t i = w.rank; i > 0; stride *= w.kernel[--i]) {
    dims[group + 1 + i] = w.kernel[i - 1];
    strides[group + 1 + i] = stride;
  }
  dims[group + 1] = inner;
  strides[group + 1] = 1;
  dims[group] = problem.filters / problem.groups;
  strides[group] = stride;
  if (group != 0) dims[0] = problem.groups, strides[0] = stride * dims[1];
  dnnl_memory_desc_t form = {};
  check(library.memory_desc_init_by_strides(&form, w.rank + 2 + group, dims, dnnl_f32, strides), kForm);
  return form;
}

dnnl_convolution_desc_t describe(const Library& library, const Problem& problem, const Rows& rows, int64_t samples) {
  const tn_window& w = problem.window;
  std::vector<int64_t> images(w.images, w.images + w.rank), results;
  dnnl_dims_t strides = {}, dilates = {}, before = {}, after = {};
  for (int32_t i = 0; i < w.rank; ++i) {
    results.push_back(tn_window_places(&w, i));
    strides[i] = w.stride[i];
    dilates[i] = w.dilation[i] - 1;
    before[i] = w.before[i];
    after[i] = w.after[i];
  }
  images[0] = rows.images;
  results[0] = rows.results;
  before[0] = rows.before;
  after[0] = rows.after;
  const dnnl_memory_desc_t from = channels_last(library, samples, images, problem.channels);
  const dnnl_memory_desc_t to = channels_last(library, samples, results, problem.filters);
  dnnl_memory_desc_t weights = weights_form(library, problem);
  weights.format_kind = dnnl_format_kind_any;
  dnnl_convolution_desc_t made = {};
  dnnl_status_t status = dnnl_success;
  if (problem.op == TN_CONV_RESULTS) {
    status =
        library.dilated_convolution_forward_desc_init(&made, dnnl_forward_inference, dnnl_convolution_direct, &from,
                                                      &weights, nullptr, &to, strides, dilates, before, after);
  } else if (problem.op == TN_CONV_IMAGES) {
    status = library.dilated_convolution_backward_data_desc_init(&made, dnnl_convolution_direct, &from, &weights, &to,
                                                                 strides, dilates, before, after);
  } else {
    status = library.dilated_convolution_backward_weights_desc_init(&made, dnnl_convolution_direct, &from, &weights,
                                                                    nullptr, &to, strides, dilates, before, after);
  }
  check(status, "oneDNN does not offer a convolution of this form");
  return made;
}

}  // namespace tenon::onednn
