// Instructions for arithmetic on vectors of lanes, with AVX2 or AVX-512. They give the bits of the kernels (kernels.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <map>

#include "pointwise/kernels.h"

namespace tenon::cpu {

namespace x86 = asmjit::x86;

// Whether VectorCode has the operation that the key describes.
[[nodiscard]] bool has_code(const KernelKey& key);

// Lanes in a register. A bool in AVX-512 code is lanes, a mask, or both: what its readers have asked for.
struct Lanes {
  x86::Vec vector;
  x86::KReg mask;
};

// Appends instructions to a function. A value is never changed once it is made. What does not change in the loops of
// the function is computed once, in its first lines: begin_loops ends them.
class VectorCode {
 public:
  // table: register with the address of the cursors.
  VectorCode(x86::Compiler& compiler, Isa isa, bool wide, const x86::Gp& table);

  [[nodiscard]] int64_t lanes() const { return vector_bytes_ / lane_bytes_; }
  void begin_loops() { first_lines_ = compiler_.cursor(); }

  // The lanes [at, at + lanes()) of the memory of a cursor, or its first lane in all lanes.
  Lanes load(int32_t cursor, const x86::Gp& at);
  Lanes broadcast(int32_t cursor);
  void store(int32_t cursor, const x86::Gp& at, Lanes& value);
  // From here on load and store touch the first `count` lanes only; lanes behind them are 0. all_lanes ends this.
  void limit(const x86::Gp& count);
  void all_lanes() { limited_ = false; }

  // The result of the operation.
  Lanes compute(const KernelKey& key, Lanes& a, Lanes& b, Lanes& c);

 private:
  using Id = asmjit::x86::Inst::Id;

  [[nodiscard]] x86::Vec make() const;
  [[nodiscard]] x86::Mem memory(int32_t cursor, const x86::Gp& at);
  // In the first lines:
  x86::Gp address(int32_t cursor);
  x86::Vec constant(uint64_t lane);
  x86::Vec lane_numbers();
  x86::Vec spread(const x86::Gp& number);
  template <class Emit>
  void in_first_lines(const Emit& emit);

  // The instruction for f32 or f64.
  [[nodiscard]] Id pick(Id narrow, Id wide) const { return wide_ ? wide : narrow; }
  x86::Vec apply(Id instruction, const x86::Vec& a, const x86::Vec& b);
  x86::Vec apply(Id instruction, const x86::Vec& a);
  const x86::Vec& vector_of(Lanes& value);
  const x86::KReg& mask_of(Lanes& value);
  Lanes compare(bool is_float, int predicate, const x86::Vec& a, const x86::Vec& b);
  x86::Vec select(Lanes& condition, const x86::Vec& yes, const x86::Vec& no);
  x86::Vec fused(uint16_t operation, const x86::Vec& a, const x86::Vec& b, const x86::Vec& c);
  Lanes of_floats(const KernelKey& key, Lanes& a, Lanes& b, Lanes& c);
  Lanes of_ints(uint16_t operation, Lanes& a, Lanes& b);
  Lanes of_bools(uint16_t operation, Lanes& a, Lanes& b);
  Lanes cast(uint8_t from, uint8_t to, Lanes& a);

  x86::Compiler& compiler_;
  const bool wide_, avx512_;
  const int64_t lane_bytes_, vector_bytes_;
  const x86::Gp table_;
  asmjit::BaseNode* first_lines_ = nullptr;  // the last of them
  std::map<int32_t, x86::Gp> addresses_;     // by cursor
  std::map<int32_t, x86::Vec> broadcasts_;   // by cursor
  std::map<uint64_t, x86::Vec> constants_;
  x86::Vec lane_numbers_;
  bool limited_ = false;
  Lanes limit_;  // which lanes load and store touch
};

}  // namespace tenon::cpu
