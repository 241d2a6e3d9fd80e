// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "core/checked.h"

namespace tenon::core {

bool same(const Dim& a, const Dim& b) {
  return a.symbol == b.symbol && a.offset == b.offset && (a.symbol == TN_SYMBOL_NONE || a.coefficient == b.coefficient);
}

bool same(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Dim& x, const Dim& y) { return same(x, y); });
}

Dim multiply(const Dim& a, const Dim& b) {
  if (a.symbol != TN_SYMBOL_NONE && b.symbol != TN_SYMBOL_NONE)
    fail(TN_UNSUPPORTED, "the product of two varying dimensions ", to_string(a), " and ", to_string(b));
  const Dim& varying = a.symbol != TN_SYMBOL_NONE ? a : b;
  const int64_t factor = a.symbol != TN_SYMBOL_NONE ? b.offset : a.offset;
  Dim product = varying;
  product.coefficient = checked_multiply(varying.coefficient, factor, "dimension");
  product.offset = checked_multiply(varying.offset, factor, "dimension");
  product.bound = varying.bound == TN_UNBOUNDED ? TN_UNBOUNDED : checked_multiply(varying.bound, factor, "dimension");
  return product;
}

Dim elements(const Dim* dims, size_t count) {
  Dim product = tn_dim_constant(1);
  for (size_t i = 0; i < count; ++i) product = multiply(product, dims[i]);
  return product;
}

Dim bounded(Dim dim, const std::vector<int64_t>& bounds) {
  if (dim.symbol == TN_SYMBOL_NONE) return dim;
  const auto symbol = static_cast<size_t>(dim.symbol);
  const int64_t bound = symbol < bounds.size() ? bounds[symbol] : TN_UNBOUNDED;
  dim.bound = bound == TN_UNBOUNDED
                  ? TN_UNBOUNDED
                  : checked_add(checked_multiply(dim.coefficient, bound, "dimension"), dim.offset, "dimension");
  return dim;
}

Shape bounded(Shape shape, const std::vector<int64_t>& bounds) {
  for (Dim& dim : shape) dim = bounded(dim, bounds);
  return shape;
}

std::string SymbolNames::name_of(int32_t symbol) const {
  return symbol == TN_SYMBOL_SAMPLES ? "samples" : text("rows", symbol);
}

std::string to_string(const Dim& dim, const SymbolNames& names) {
  if (dim.symbol == TN_SYMBOL_NONE) return std::to_string(dim.offset);
  std::string name = names.name_of(dim.symbol);
  if (dim.coefficient != 1) name = text(dim.coefficient, "*", name);
  if (dim.offset != 0) name = text(name, "+", dim.offset);
  return name;
}

std::string to_string(const Shape& shape, const SymbolNames& names) {
  return "[" + base::joined(shape, [&](const Dim& dim) { return to_string(dim, names); }) + "]";
}

namespace {

struct DtypeName {
  tn_dtype dtype;
  const char* name;
  const char* brief;
};
constexpr DtypeName kDtypes[] = {{TN_COMPUTE, "compute", "compute"}, {TN_F32, "float32", "f32"},
                                 {TN_F64, "float64", "f64"},         {TN_F16, "float16", "f16"},
                                 {TN_BF16, "bfloat16", "bf16"},      {TN_I8, "int8", "i8"},
                                 {TN_I16, "int16", "i16"},           {TN_I32, "int32", "i32"},
                                 {TN_I64, "int64", "i64"},           {TN_U8, "uint8", "u8"},
                                 {TN_U16, "uint16", "u16"},          {TN_U32, "uint32", "u32"},
                                 {TN_BOOL, "bool", "bool"}};
constexpr const char* kCodes[] = {"int", "uint", "float", nullptr, "bfloat", nullptr, "bool"};  // by DLPack's code

// Whether it is a number type of one lane, of less than a byte or of whole bytes.
bool is_known_dtype(tn_dtype dtype) {
  const uint32_t code = tn_dtype_code(dtype), bits = tn_dtype_bits(dtype);
  const bool whole = bits > 0 && (bits < 8 || bits % 8 == 0);
  return code < std::size(kCodes) && kCodes[code] != nullptr && whole && dtype == TN_DTYPE(code, bits);
}

}  // namespace

const char* storage_name(int32_t storage) {
  switch (storage) {
    case TN_DENSE:
      return "dense";
    case TN_ROW_SPARSE:
      return "row_sparse";
    case TN_RAGGED:
      return "ragged";
    case TN_CSR:
      return "csr";
    default:
      return "unknown";
  }
}

std::string dtype_name(tn_dtype dtype) {
  for (const DtypeName& entry : kDtypes)
    if (entry.dtype == dtype) return entry.name;
  const uint32_t code = tn_dtype_code(dtype), bits = tn_dtype_bits(dtype);
  if (is_known_dtype(dtype)) return text(kCodes[code], bits);
  const uint32_t lanes = dtype >> 16;
  return text("dtype(code ", code, ", bits ", bits, lanes == 1 ? "" : text(", lanes ", lanes), ")");
}

uint64_t storage_bytes(tn_dtype dtype, uint64_t elements, const char* what) {
  (void)checked_multiply(elements / 8 + 1, uint64_t{tn_dtype_bits(dtype)}, what);
  return tn_dtype_storage(dtype, elements);
}

tn_dtype dtype_from_name(const std::string& name) {
  std::string known;
  for (const DtypeName& entry : kDtypes) {
    if (name == entry.name || name == entry.brief) return entry.dtype;
    base::append(known, entry.name);
  }
  fail(TN_INVALID, "unknown element type \"", name, "\"; known: ", known);
}

DLDataType dlpack_type(tn_dtype dtype) {
  return {static_cast<uint8_t>(tn_dtype_code(dtype)), static_cast<uint8_t>(tn_dtype_bits(dtype)), 1};
}

bool is_float(tn_dtype dtype) { return dtype == TN_COMPUTE || tn_dtype_code(dtype) == 2 || tn_dtype_code(dtype) == 4; }

bool is_integer(tn_dtype dtype) { return dtype != TN_COMPUTE && tn_dtype_code(dtype) <= 1; }

tn_spec Spec::view() const {
  tn_spec view = {};
  view.size = sizeof view;
  view.dtype = dtype;
  view.storage = storage;
  view.rank = static_cast<int32_t>(shape.size());
  view.dims = shape.data();
  view.levels = levels;
  view.outer = outer.empty() ? nullptr : outer.data();
  return view;
}

Dim given_dim(const tn_dim& dim) {
  const bool known =
      dim.symbol == TN_SYMBOL_NONE || dim.symbol == TN_SYMBOL_SAMPLES || dim.symbol >= TN_SYMBOL_FIRST_RAGGED;
  if (!known) fail(TN_INVALID, "a dimension of the unknown symbol ", dim.symbol);
  if (dim.symbol != TN_SYMBOL_NONE && dim.coefficient < 1)
    fail(TN_INVALID, "the dimension ", to_string(dim), " has the coefficient ", dim.coefficient,
         "; expected at least 1");
  if (dim.offset < 0) fail(TN_INVALID, "the dimension ", to_string(dim), " can be negative");
  check_unused(dim.reserved, "reserved member of a tn_dim");
  return dim.symbol == TN_SYMBOL_NONE ? tn_dim_constant(dim.offset) : dim;
}

Spec Spec::from(const tn_spec& spec) {
  if (!TN_HAS(&spec, tn_spec, outer)) fail(TN_INVALID, "a tn_spec states a size of ", spec.size, " bytes");
  if (spec.dtype != TN_COMPUTE && !is_known_dtype(spec.dtype))
    fail(TN_UNSUPPORTED, "the element type ", dtype_name(spec.dtype), " is unknown");
  if (spec.storage < TN_DENSE || spec.storage > TN_CSR)
    fail(TN_UNSUPPORTED, "the storage ", spec.storage, " is unknown");
  if (spec.layout != 0) fail(TN_UNSUPPORTED, "the layout ", spec.layout, " is unknown");
  if (spec.rank < 0 || spec.rank > TN_MAX_RANK)
    fail(TN_INVALID, "rank ", spec.rank, " is not between 0 and ", TN_MAX_RANK);
  if (spec.rank > 0 && spec.dims == nullptr) fail(TN_INVALID, "a shape of rank ", spec.rank, " without dimensions");
  Spec result{spec.dtype, {}, spec.storage, spec.levels, {}};
  for (int32_t i = 0; i < spec.rank; ++i) result.shape.push_back(given_dim(spec.dims[i]));
  constexpr uint32_t kMostLevels = 2;
  const uint32_t outer = spec.storage == TN_CSR ? 1 : spec.levels;
  if (outer > kMostLevels) fail(TN_INVALID, "a ragged shape of ", outer, " levels; expected 1 or 2");
  if (spec.outer != nullptr)
    for (uint32_t i = 0; i < outer; ++i) result.outer.push_back(given_dim(spec.outer[i]));
  return result;
}

// Prints TN_COMPUTE as "float": while layers are built, the compute type of the machine is not known yet.
std::string to_string(const Spec& spec, const SymbolNames& names) {
  return (spec.dtype == TN_COMPUTE ? "float" : dtype_name(spec.dtype)) + " " + to_string(spec.shape, names);
}

}  // namespace tenon::core
