// SPDX-License-Identifier: Apache-2.0
#include <tenon/device_images.h>

#include <cmath>
#include <numeric>

#include "check/definitions/image_reference.h"
#include "check/definitions/statement.h"

namespace tenon::check {

namespace {

constexpr int64_t kChannels = 2, kFilters = 3;
// Over images of 5 x 4, with places outside of them on some sides.
constexpr tn_window kWindow = {sizeof(tn_window), 2, {5, 4, 1}, {3, 2, 1}, {2, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 1, 0}};

std::vector<int64_t> images(int64_t channels = kChannels) { return {kWindow.images[0], kWindow.images[1], channels}; }
std::vector<int64_t> places(int64_t channels) {
  return {tn_window_places(&kWindow, 0), tn_window_places(&kWindow, 1), channels};
}
std::function<tn::Spec(const tn::Planner&)> planned(const std::vector<int64_t>& shape) {
  return [shape](const tn::Planner& planner) {
    return tn::Spec({planner.input(0)[0], shape.at(0), shape.at(1), shape.at(2)});
  };
}
reference::ImageSizes sizes(const StatementArguments& a, int64_t filters = kFilters) {
  return {a.samples, kChannels, filters, 1};
}

Numbers weight_values() {
  Numbers values;
  for (int64_t i = 0; i < kFilters * kWindow.kernel[0] * kWindow.kernel[1] * kChannels; ++i)
    values.push_back(static_cast<double>(i * 7 % 11) / 8 - 0.5);
  return values;
}
tn::Tensor weights(tn::Builder& body) {
  return body.constant(tn::Spec({kFilters, kWindow.kernel[0], kWindow.kernel[1], kChannels}), weight_values());
}

}  // namespace

void add_conv(std::vector<Statement>& to) {
  to.push_back({"conv",
                {floats(images())},
                [](tn::Builder& body, const tn_builder&) {
                  return body.conv(TN_CONV_RESULTS, kWindow, 1, body.input(0), weights(body)).ref();
                },
                [](const StatementArguments& a) {
                  return reference::conv(TN_CONV_RESULTS, kWindow, sizes(a), a.inputs[0], weight_values());
                },
                planned(places(kFilters))});
  to.push_back({"conv of images",
                {floats(places(kFilters))},
                [](tn::Builder& body, const tn_builder&) {
                  return body.conv(TN_CONV_IMAGES, kWindow, 1, body.input(0), weights(body)).ref();
                },
                [](const StatementArguments& a) {
                  return reference::conv(TN_CONV_IMAGES, kWindow, sizes(a), a.inputs[0], weight_values());
                },
                planned(images())});
  to.push_back({"conv of weights",  // then the convolution with them
                {floats(images()), floats(places(kFilters))},
                [](tn::Builder& body, const tn_builder&) {
                  const tn::Tensor products = body.conv(TN_CONV_WEIGHTS, kWindow, 1, body.input(0), body.input(0, 1));
                  return body.conv(TN_CONV_RESULTS, kWindow, 1, body.input(0), products).ref();
                },
                [](const StatementArguments& a) {
                  const Numbers products =
                      reference::conv(TN_CONV_WEIGHTS, kWindow, sizes(a), a.inputs[0], a.inputs[1]);
                  return reference::conv(TN_CONV_RESULTS, kWindow, sizes(a), a.inputs[0], products);
                },
                planned(places(kFilters)),
                true});
}

// A convolution with a program behind it: `record` records the program over the result, `apply` computes it in place
// from [rows, columns].
void add_conv_epilogue(std::vector<Statement>& to, const std::string& what, int32_t op,
                       const std::function<void(tn::Program&, const tn::Float&)>& record,
                       const std::function<void(Numbers&, int64_t)>& apply) {
  const bool results = op == TN_CONV_RESULTS;
  const int64_t columns = results ? kFilters : kChannels;
  to.push_back({"conv " + what,
                {floats(results ? images() : places(kFilters))},
                [op, record](tn::Builder& body, const tn_builder&) {
                  tn::Program p;
                  record(p, p.full());
                  std::vector<tn::Tensor> operands = {body.conv(op, kWindow, 1, body.input(0), weights(body))};
                  return body.pointwise(p, operands, 3).front().ref();
                },
                [op, apply, columns](const StatementArguments& a) {
                  Numbers products = reference::conv(op, kWindow, sizes(a), a.inputs[0], weight_values());
                  apply(products, columns);
                  return products;
                },
                planned(results ? places(kFilters) : images()),
                false,
                "",
                TN_POINTWISE});
}

void add_conv_epilogue(std::vector<Statement>& to) {
  const auto record_elements = [](tn::Program& p, const tn::Float& products) {
    p.output(tanh(products * 0.25 + to_float(p.column())));
  };
  const auto elements = [](Numbers& products, int64_t columns) {
    for (size_t i = 0; i < products.size(); ++i)
      products[i] = std::tanh(0.25 * products[i] + static_cast<double>(static_cast<int64_t>(i) % columns));
  };
  add_conv_epilogue(to, "with an epilogue of elements", TN_CONV_RESULTS, record_elements, elements);
  add_conv_epilogue(to, "of images with an epilogue of elements", TN_CONV_IMAGES, record_elements, elements);
  add_conv_epilogue(
      to, "with an epilogue of rows", TN_CONV_RESULTS,
      [](tn::Program& p, const tn::Float& products) { p.output(products - sum_per_row(products)); },
      [](Numbers& products, int64_t columns) {
        for (size_t row = 0; row < products.size(); row += static_cast<size_t>(columns)) {
          double* const first = products.data() + row;
          const double sum = std::accumulate(first, first + columns, 0.0);
          for (int64_t c = 0; c < columns; ++c) first[c] -= sum;
        }
      });
  add_conv_epilogue(
      to, "with an epilogue of columns", TN_CONV_RESULTS,
      [](tn::Program& p, const tn::Float& products) { p.output(products - sum_per_column(products)); },
      [](Numbers& products, int64_t columns) {
        Numbers sums(static_cast<size_t>(columns), 0.0);
        for (size_t i = 0; i < products.size(); ++i) sums[i % sums.size()] += products[i];
        for (size_t i = 0; i < products.size(); ++i) products[i] -= sums[i % sums.size()];
      });
  to.back().couples_samples = true;
}

void add_pool(std::vector<Statement>& to) {
  for (const int32_t op : {TN_POOL_SUM, TN_POOL_SPREAD}) {
    const bool sum = op == TN_POOL_SUM;
    to.push_back({sum ? "pool sum" : "pool spread",
                  {floats(sum ? images() : places(kChannels))},
                  [op](tn::Builder& body, const tn_builder&) { return body.pool(op, kWindow, body.input(0)).ref(); },
                  [op](const StatementArguments& a) {
                    return reference::pool(op, kWindow, sizes(a, kChannels), a.inputs[0], {}).first;
                  },
                  planned(sum ? places(kChannels) : images())});
  }
  const auto maximum = [](const StatementArguments& a) {
    return reference::pool(TN_POOL_MAX, kWindow, sizes(a, kChannels), a.inputs[0], {});
  };
  to.push_back({"pool max",
                {floats(images())},
                [](tn::Builder& body, const tn_builder&) { return body.pool_max(kWindow, body.input(0)).first.ref(); },
                [maximum](const StatementArguments& a) { return maximum(a).first; },
                planned(places(kChannels))});
  for (const int32_t op : {TN_POOL_SCATTER, TN_POOL_TAKE}) {
    const bool scatter = op == TN_POOL_SCATTER;
    to.push_back({scatter ? "pool scatter" : "pool take",  // at the positions of the maxima of input 0
                  {floats(images()), floats(scatter ? places(kChannels) : images())},
                  [op](tn::Builder& body, const tn_builder&) {
                    const tn::Tensor positions = body.pool_max(kWindow, body.input(0)).second;
                    return body.pool(op, kWindow, body.input(0, 1), positions).ref();
                  },
                  [op, maximum](const StatementArguments& a) {
                    return reference::pool(op, kWindow, sizes(a, kChannels), a.inputs[1], maximum(a).second).first;
                  },
                  planned(scatter ? images() : places(kChannels))});
  }
}

void add_resize(std::vector<Statement>& to) {
  for (uint32_t flags = 0; flags < 4; ++flags) {
    const tn_resize how = {sizeof how, 2, {5, 4, 1}, {3, 6, 1}, {1.5, 0.625, 1}, {0.25, 0.125, 0}, flags, 0};
    const bool transposed = (flags & TN_RESIZE_TRANSPOSED) != 0;
    const std::vector<int64_t> from = {5, 4, kChannels}, result = {3, 6, kChannels};
    to.push_back(
        {"resize with flags " + std::to_string(flags),
         {floats(transposed ? result : from)},
         [how](tn::Builder& body, const tn_builder&) { return body.resize(how, body.input(0)).ref(); },
         [how](const StatementArguments& a) { return reference::resize(how, a.samples, kChannels, a.inputs[0]); },
         planned(transposed ? from : result)});
  }
}

}  // namespace tenon::check
