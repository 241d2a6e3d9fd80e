// Symbolic shapes and tensor specifications. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

using Dim = tn_dim;
using Shape = std::vector<Dim>;

// Equal as formulas; bounds do not count.
[[nodiscard]] bool same(const Dim& a, const Dim& b);
[[nodiscard]] bool same(const Shape& a, const Shape& b);

// The product of two dimensions of which at most one is symbolic; fails with TN_UNSUPPORTED otherwise.
[[nodiscard]] Dim multiply(const Dim& a, const Dim& b);
[[nodiscard]] Dim elements(const Dim* dims, size_t count);
[[nodiscard]] inline Dim elements(const Shape& shape) { return elements(shape.data(), shape.size()); }

// The same shape with every symbol's bound put in: bounds[symbol], TN_UNBOUNDED where not known.
[[nodiscard]] Shape bounded(const Shape& shape, const std::vector<int64_t>& bounds);

// Whether it counts the rows of sequences: TN_SYMBOL_FIRST_ROWS and above.
[[nodiscard]] inline bool is_rows(const Dim& dim) { return dim.symbol >= TN_SYMBOL_FIRST_ROWS; }

// Names of symbols, for messages.
class SymbolNames {
 public:
  virtual ~SymbolNames() = default;
  [[nodiscard]] virtual std::string name_of(int32_t symbol) const;  // "samples", "rows2"
};

// "[samples, 784]"
[[nodiscard]] std::string to_string(const Shape& shape, const SymbolNames& names = {});
[[nodiscard]] std::string to_string(const Dim& dim, const SymbolNames& names = {});
// "float32"
[[nodiscard]] std::string dtype_name(tn_dtype dtype);
[[nodiscard]] const char* storage_name(int32_t storage);  // "dense", "ragged", "csr"
// The type of a name as above or short ("f32", "u8", "i64"); 0 (TN_COMPUTE) for "compute"; fails naming it otherwise.
[[nodiscard]] tn_dtype dtype_from_name(const std::string& name);
[[nodiscard]] DLDataType dlpack_type(tn_dtype dtype);
[[nodiscard]] bool is_float(tn_dtype dtype);    // TN_COMPUTE included
[[nodiscard]] bool is_integer(tn_dtype dtype);  // signed, unsigned

// The owning form of tn_spec.
struct Spec {
  tn_dtype dtype = TN_COMPUTE;
  Shape shape;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  Shape outer;  // TN_RAGGED: [levels], from the inside; TN_CSR: the entries

  // A view for the plugin interface, valid while this Spec is unchanged.
  [[nodiscard]] tn_spec view() const;
  static Spec from(const tn_spec& spec);
};
// "float32 [samples, 784]"
[[nodiscard]] std::string to_string(const Spec& spec, const SymbolNames& names = {});

}  // namespace tenon
