// Symbolic shapes and tensor specifications. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::core {

using Dim = tn_dim;
using Shape = std::vector<Dim>;

// Whether dimensions (shapes) are equal as formulas, whatever their bounds.
[[nodiscard]] bool same(const Dim& a, const Dim& b);
[[nodiscard]] bool same(const Shape& a, const Shape& b);

// Returns the product of two dimensions. Throws TN_UNSUPPORTED if both are symbolic.
[[nodiscard]] Dim multiply(const Dim& a, const Dim& b);
// Returns the product of all dimensions, the number of elements of a tensor.
[[nodiscard]] Dim elements(const Dim* dims, size_t count);
[[nodiscard]] inline Dim elements(const Shape& shape) { return elements(shape.data(), shape.size()); }

// Return a dimension, or a shape, with the bounds of its dimensions filled in. bounds[symbol]: the largest value of a
// symbol, or TN_UNBOUNDED; symbols beyond the end of `bounds` are unbounded.
[[nodiscard]] Dim bounded(Dim dim, const std::vector<int64_t>& bounds);
[[nodiscard]] Shape bounded(Shape shape, const std::vector<int64_t>& bounds);

// Whether the dimension is ragged: a symbol, TN_SYMBOL_FIRST_RAGGED or above, that counts the rows of sequences.
[[nodiscard]] inline bool is_ragged(const Dim& dim) {
  return dim.symbol >= TN_SYMBOL_FIRST_RAGGED && dim.coefficient == 1 && dim.offset == 0;
}

// Names of symbols, for messages.
class SymbolNames {
 public:
  virtual ~SymbolNames() = default;
  [[nodiscard]] virtual std::string name_of(int32_t symbol) const;  // "samples", "rows2"
};

// "[samples, 784]"
[[nodiscard]] std::string to_string(const Shape& shape, const SymbolNames& names = {});
[[nodiscard]] std::string to_string(const Dim& dim, const SymbolNames& names = {});
// "float32"; also names types that Tenon does not store, such as "int4".
[[nodiscard]] std::string dtype_name(tn_dtype dtype);
// Returns the bytes of `elements` elements, by tn_dtype_storage. TN_INVALID, naming `what`, if there are too many.
[[nodiscard]] uint64_t storage_bytes(tn_dtype dtype, uint64_t elements, const char* what);
// Whether each element has bytes of its own. Types of less than 8 bits, such as int4, do not: only native kernels
// compute with them.
[[nodiscard]] inline bool has_whole_bytes(tn_dtype dtype) { return dtype == TN_COMPUTE || tn_dtype_bytes(dtype) > 0; }
[[nodiscard]] const char* storage_name(int32_t storage);  // "dense", "ragged", "csr"
// Returns the type of a name, long ("float32") or short ("f32"); TN_COMPUTE for "compute". Throws TN_INVALID naming any
// other name.
[[nodiscard]] tn_dtype dtype_from_name(const std::string& name);
[[nodiscard]] DLDataType dlpack_type(tn_dtype dtype);
[[nodiscard]] bool is_float(tn_dtype dtype);    // TN_COMPUTE included
[[nodiscard]] bool is_integer(tn_dtype dtype);  // signed, unsigned

// Returns a dimension that a plugin gave: the bound of a constant becomes its value. Throws TN_INVALID if it can be
// negative or its symbol is not given out.
[[nodiscard]] Dim given_dim(const tn_dim& dim);

// The owning form of tn_spec.
struct Spec {
  tn_dtype dtype = TN_COMPUTE;
  Shape shape;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  Shape outer;  // TN_RAGGED: [levels] numbers of sequences, innermost first; TN_CSR: [1] number of entries

  // A view for the plugin interface, valid while this Spec is unchanged.
  [[nodiscard]] tn_spec view() const;
  static Spec from(const tn_spec& spec);
};
// "float32 [samples, 784]"
[[nodiscard]] std::string to_string(const Spec& spec, const SymbolNames& names = {});

}  // namespace tenon::core
