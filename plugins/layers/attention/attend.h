// Attention of one query of one head over rows, and its derivative. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::attention {

// Rows of a matrix: row i is at data + stride * i, or at data + stride * numbers[i].
template <typename T>
struct Rows {
  const T* data = nullptr;
  int64_t stride = 0;
  const int64_t* numbers = nullptr;
  int64_t count = 0;
};

// Keys and values that a query sees, in this order. A value has `width` elements, a key `depth`.
template <typename T>
struct Seen {
  Rows<T> past_keys, past_values, keys, values;
  int64_t depth = 0, width = 0;
  T scale = 0;

  int64_t count() const { return past_keys.count + keys.count; }
};

// output [width] = the sum of the values, weighted by softmax(scale query . key), 0 if there are none. The bits follow
// from the rows alone, wherever they lie. weights: [count] of scratch. Returns the logarithm of the sum of the
// exponentials of the scores.
float attend(const float* query, const Seen<float>& seen, float* weights, float* output);
double attend(const double* query, const Seen<double>& seen, double* weights, double* output);

// The derivatives of one output. All `seen` are `keys` and `values`.
template <typename T>
struct AttendGradient {
  const T* query;
  const T* output;  // [width] what attend wrote
  const T* given;   // [width] its gradient
  T log_sum;        // what attend returned
  // Gradients that are added to, null if not wanted: of the query [depth], and of keys and values, with their strides.
  T *to_query, *to_keys, *to_values;
};
void attend_gradient(const AttendGradient<float>& of, const Seen<float>& seen, float* weights);
void attend_gradient(const AttendGradient<double>& of, const Seen<double>& seen, double* weights);

}  // namespace tenon::attention
