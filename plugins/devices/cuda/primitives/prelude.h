// The text that all generated kernels begin with. It follows the lines that define F (float values), I (int values) and
// U (I without sign), and includes no header, since NVRTC has none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cuda {

// Element types, conversion, integer arithmetic that wraps.
inline constexpr const char* kElementsText = R"cuda(
typedef long long Int64;
struct Half { unsigned short bits; };
struct Brain { unsigned short bits; };
struct Truth { unsigned char byte; };

template <class T> struct Ends;
template <> struct Ends<signed char> { static __device__ Int64 low() { return -128; } static __device__ Int64 high() { return 127; } };
template <> struct Ends<short> { static __device__ Int64 low() { return -32768; } static __device__ Int64 high() { return 32767; } };
template <> struct Ends<int> { static __device__ Int64 low() { return -2147483647 - 1; } static __device__ Int64 high() { return 2147483647; } };
template <> struct Ends<Int64> { static __device__ Int64 low() { return -9223372036854775807LL - 1; } static __device__ Int64 high() { return 9223372036854775807LL; } };
template <> struct Ends<unsigned char> { static __device__ Int64 low() { return 0; } static __device__ Int64 high() { return 255; } };
template <> struct Ends<unsigned short> { static __device__ Int64 low() { return 0; } static __device__ Int64 high() { return 65535; } };
template <> struct Ends<unsigned int> { static __device__ Int64 low() { return 0; } static __device__ Int64 high() { return 4294967295LL; } };
template <> struct Ends<float> { static __device__ float low() { return -high(); } static __device__ float high() { return __uint_as_float(0x7f800000u); } };
template <> struct Ends<double> { static __device__ double low() { return -high(); } static __device__ double high() { return __longlong_as_double(0x7ff0000000000000LL); } };

// The nearest number that To can hold, after truncation towards 0; NaN gives 0.
template <class To, class From> __device__ To nearest_of_float(From x) {
  if (x >= (From)Ends<To>::high()) return (To)Ends<To>::high();
  if (x <= (From)Ends<To>::low()) return (To)Ends<To>::low();
  return x == x ? (To)x : To(0);
}
template <class To> __device__ To nearest(float x) { return nearest_of_float<To>(x); }
template <class To> __device__ To nearest(double x) { return nearest_of_float<To>(x); }
template <class To> __device__ To nearest(Int64 x) {
  return x < Ends<To>::low() ? (To)Ends<To>::low() : x > Ends<To>::high() ? (To)Ends<To>::high() : (To)x;
}
template <class To> __device__ To nearest(int x) { return nearest<To>((Int64)x); }

// A product re-biases the exponent and normalises subnormals; then the upper exponent bits of infinity and NaN are set.
__device__ float decode_half(Half h) {
  const float size = __uint_as_float((h.bits & 0x7fffu) << 13) * 5.192296858534828e33f;
  const unsigned ends = size >= 65536.0f ? 0x7f800000u : 0u;
  return __uint_as_float(__float_as_uint(size) | ends | (h.bits & 0x8000u) << 16);
}
// Rounded to nearest, ties to even.
__device__ Half encode_half(float x) {
  const unsigned all = __float_as_uint(x);
  const unsigned size = all & 0x7fffffffu;
  unsigned bits;
  if (size > 0x7f800000u) bits = 0x7e00u;
  else if (size >= 0x477ff000u) bits = 0x7c00u;
  else if (size < 0x38800000u) bits = __float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u;
  else bits = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  return Half{(unsigned short)(bits | (all >> 16 & 0x8000u))};
}
__device__ Brain encode_brain(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return Brain{(unsigned short)(bits >> 16 | 0x40u)};
  return Brain{(unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

template <class E> __device__ E decode(E e) { return e; }
__device__ int decode(signed char e) { return e; }
__device__ int decode(short e) { return e; }
__device__ int decode(unsigned char e) { return e; }
__device__ int decode(unsigned short e) { return e; }
__device__ Int64 decode(unsigned int e) { return e; }
__device__ int decode(Truth e) { return e.byte != 0; }
__device__ float decode(Half e) { return decode_half(e); }
__device__ float decode(Brain e) { return __uint_as_float((unsigned)e.bits << 16); }

// Element to value and back.
template <class V> struct Value { template <class E> static __device__ V of(E e) { return (V)decode(e); } };
template <> struct Value<I> { template <class E> static __device__ I of(E e) { return nearest<I>(decode(e)); } };
template <> struct Value<bool> { template <class E> static __device__ bool of(E e) { return decode(e) != 0; } };
template <class E> struct Element {
  template <class V> static __device__ E of(V v) { return nearest<E>(v); }
  static __device__ E of(bool v) { return E(v ? 1 : 0); }
};
template <> struct Element<float> { template <class V> static __device__ float of(V v) { return (float)v; } };
template <> struct Element<double> { template <class V> static __device__ double of(V v) { return (double)v; } };
template <> struct Element<Half> { template <class V> static __device__ Half of(V v) { return encode_half((float)v); } };
template <> struct Element<Brain> { template <class V> static __device__ Brain of(V v) { return encode_brain((float)v); } };
template <> struct Element<Truth> { template <class V> static __device__ Truth of(V v) { return Truth{(unsigned char)(v != V(0))}; } };

// Sums and products that are each rounded: "never merged into a single multiply-add" (CUDA Math API).
__device__ float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ float minus(float a, float b) { return __fsub_rn(a, b); }
__device__ double minus(double a, double b) { return __dsub_rn(a, b); }
__device__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ double times(double a, double b) { return __dmul_rn(a, b); }
template <class T> __device__ T plus(T a, T b) { return a + b; }

__device__ I wrap_add(I a, I b) { return (I)((U)a + (U)b); }
__device__ I wrap_sub(I a, I b) { return (I)((U)a - (U)b); }
__device__ I wrap_mul(I a, I b) { return (I)((U)a * (U)b); }
// The ends that a division traps or overflows at: by 0 both are 0, by -1 the lowest int wraps around to itself.
__device__ I floor_div(I a, I b) {
  if (b == 0 || b == -1) return b == 0 ? I(0) : wrap_sub(0, a);
  const I quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
__device__ I floor_mod(I a, I b) {
  if (b == 0 || b == -1) return 0;
  const I rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ I sign_of(I a) { return a < 0 ? -1 : a > 0 ? 1 : 0; }
__device__ F sign_of(F a) { return a < F(0) ? F(-1) : a > F(0) ? F(1) : a; }
__device__ bool is_finite(F a) { return a - a == F(0); }
__device__ F added(F a, F b) { return plus(a, b); }
__device__ I added(I a, I b) { return wrap_add(a, b); }
__device__ bool added(bool a, bool b) { return a || b; }

template <class V, class E> __device__ V read(const void* from, Int64 at) { return Value<V>::of(((const E*)from)[at]); }
// request: 0 nothing, 1 write, 2 add to the element.
template <class E, class V> __device__ void store(void* to, Int64 at, V value, int request) {
  if (request == 0) return;
  E* const place = (E*)to + at;
  *place = Element<E>::of(request == 2 ? added(value, Value<V>::of(*place)) : value);
}

// Elements at, at + 1, at + 2, at + 3 of `count`, as many as there are: by one access of 16 bytes (two of 8-byte
// elements, fewer bytes of small ones) where all four are there and aligned for that.
template <class E> struct __align__(sizeof(E) < 4 ? 4 * sizeof(E) : 16) Four { E of[4]; };
template <class E> __device__ bool are_four(const E* first, Int64 at, Int64 count) {
  return at + 4 <= count && (Int64)first % alignof(Four<E>) == 0;
}
template <class V, class E> __device__ void read_four(const void* from, Int64 at, Int64 count, V* to) {
  const E* const first = (const E*)from;
  if (are_four(first, at, count)) {
    const Four<E> four = *(const Four<E>*)(first + at);
    for (int k = 0; k < 4; ++k) to[k] = Value<V>::of(four.of[k]);
  } else {
    for (int k = 0; k < 4; ++k)
      if (at + k < count) to[k] = Value<V>::of(first[at + k]);
  }
}
template <class E, class V> __device__ void store_four(void* to, Int64 at, Int64 count, const V* from, int request) {
  if (request == 0) return;
  E* const first = (E*)to;
  if (are_four((const E*)first, at, count)) {
    Four<E>* const place = (Four<E>*)(first + at);
    Four<E> four;
    if (request == 2) four = *place;
    for (int k = 0; k < 4; ++k)
      four.of[k] = Element<E>::of(request == 2 ? added(from[k], Value<V>::of(four.of[k])) : from[k]);
    *place = four;
  } else {
    for (int k = 0; k < 4; ++k)
      if (at + k < count) store<E>(to, at + k, from[k], request);
  }
}
)cuda";

// Arguments, sizes and reductions. A block has 256 threads.
inline constexpr const char* kReductionsText = R"cuda(
struct Fault { Int64 code, id, position, height; };
struct Rows { Int64* count; Int64* ids; Int64 capacity; };
__device__ Int64 used(const Rows& rows) {
  const Int64 count = *rows.count;
  return count < 0 ? 0 : count > rows.capacity ? rows.capacity : count;
}
struct Extent { Int64 coefficient, offset, symbol; };
__device__ Int64 size_of(const Extent& e, const Int64* symbols) {
  const Int64 size = e.symbol == 0 ? e.offset : e.coefficient * symbols[e.symbol] + e.offset;
  return size < 0 ? 0 : size;
}
__device__ Int64 pieces(Int64 count, Int64 length, Int64 most) {
  const Int64 n = (count + length - 1) / length;
  return n < 1 ? 1 : n > most ? most : n;
}
__device__ Int64 divide(Int64 a, Int64 b) {
  return ((a | b) >> 32) == 0 ? (Int64)((unsigned)a / (unsigned)b) : a / b;
}

// TN_OP_UNIFORM: Philox4x32-10. Shifts let the compiler see that four elements in a row need it once.
struct Random { unsigned long long seed, step; };
__device__ float uniform(const Random* random, unsigned draw, Int64 element) {
  unsigned c0 = (unsigned)((unsigned long long)element >> 2), c1 = draw, c2 = (unsigned)random->step, c3 = (unsigned)(random->step >> 32);
  unsigned key0 = (unsigned)random->seed, key1 = (unsigned)(random->seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = (unsigned)(p1 >> 32) ^ c1 ^ key0;
    c1 = (unsigned)p1;
    c2 = (unsigned)(p0 >> 32) ^ c3 ^ key1;
    c3 = (unsigned)p0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const unsigned place = (unsigned)element & 3u, word = place == 0 ? c0 : place == 1 ? c1 : place == 2 ? c2 : c3;
  return (float)(word >> 8) * 5.9604644775390625e-08f;
}

// NaN on either side gives NaN.
template <class T> __device__ T most(T a, T b) { return a != a || b < a ? a : b; }
template <class T> __device__ T least(T a, T b) { return a != a || a < b ? a : b; }
struct Sum {
  template <class T> static __device__ T start() { return T(0); }
  template <class T> static __device__ T join(T a, T b) { return plus(a, b); }
};
struct Max {
  template <class T> static __device__ T start() { return (T)Ends<T>::low(); }
  template <class T> static __device__ T join(T a, T b) { return most(a, b); }
};
struct Min {
  template <class T> static __device__ T start() { return (T)Ends<T>::high(); }
  template <class T> static __device__ T join(T a, T b) { return least(a, b); }
};

// Folds one value of each thread of a warp (a block); all threads must call it, and all get the same bits.
template <class R, class T> __device__ T across_warp(T v) {
  for (int step = 16; step > 0; step >>= 1) v = R::join(v, __shfl_xor_sync(0xffffffffu, v, step));
  return __shfl_sync(0xffffffffu, v, 0);
}
template <class R, class T> __device__ T across_block(T v) {
  __shared__ T part[8];
  v = across_warp<R>(v);
  __syncthreads();  // `part` of an earlier call was read by all
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int k = 1; k < 8; ++k) v = R::join(v, part[k]);
  return v;
}
// Folds over the eight threads of each of 32 columns; the first 32 threads get the results.
template <class R, class T> __device__ T across_strip(T v) {
  __shared__ T part[256];
  __syncthreads();
  part[threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.x < 32)
    for (int k = 1; k < 8; ++k) v = R::join(v, part[threadIdx.x + 32 * k]);
  return v;
}
// buffer [count]: the fold of all elements, by all threads of a block.
template <class R, class T> __device__ T fold_parts(const void* buffer, Int64 count) {
  T v = R::template start<T>();
  for (Int64 k = threadIdx.x; k < count; k += 256) v = R::join(v, ((const T*)buffer)[k]);
  return across_block<R>(v);
}
// buffer [strips, columns]: the fold of column c, by one thread.
template <class R, class T> __device__ T fold_strips(const void* buffer, Int64 c, Int64 columns, Int64 strips) {
  T v = R::template start<T>();
  for (Int64 s = 0; s < strips; ++s) v = R::join(v, ((const T*)buffer)[s * columns + c]);
  return v;
}
)cuda";

// Elements of primitives that copy, or add floats.
inline constexpr const char* kPutText = R"cuda(
template <class T> __device__ void put(T* to, T value, int request) { *to = request == 2 ? (T)(*to + value) : value; }
)cuda";

}  // namespace tenon::cuda
