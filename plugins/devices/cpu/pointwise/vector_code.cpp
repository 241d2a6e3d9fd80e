// Selects instructions. SPDX-License-Identifier: Apache-2.0
#ifdef TENON_CPU_ASSEMBLES
#include "pointwise/vector_code.h"

#include <tenon/program.h>

#include <array>
#include <bit>

#include "pointwise/split_passes.h"

namespace tenon::cpu {

namespace {

namespace Inst = asmjit::x86::Inst;

// Predicates of vcmpps; those without "unordered" are false for NaN.
enum Predicate : int { kEqual = 0, kLess = 17, kLessEqual = 18, kUnordered = 3, kNotEqualOrUnordered = 4 };

constexpr uint64_t all_bits(bool wide) { return wide ? ~uint64_t{0} : 0xffffffff; }
constexpr uint64_t sign_bit(bool wide) { return wide ? uint64_t{1} << 63 : 0x80000000; }
constexpr uint64_t one(bool wide) { return wide ? std::bit_cast<uint64_t>(1.0) : std::bit_cast<uint32_t>(1.0F); }
constexpr uint64_t infinity(bool wide) { return wide ? 0x7ff0000000000000 : 0x7f800000; }

bool has_float(uint16_t operation) {
  switch (operation) {
    case TN_OP_ADD:
    case TN_OP_SUB:
    case TN_OP_MUL:
    case TN_OP_DIV:
    case TN_OP_MIN:
    case TN_OP_MAX:
    case TN_OP_NEG:
    case TN_OP_ABS:
    case TN_OP_SQRT:
    case TN_OP_EQUAL:
    case TN_OP_LESS:
    case TN_OP_LESS_EQUAL:
    case TN_OP_IS_FINITE:
    case kMulAdd:
    case kMulSub:
    case kNegMulAdd:
      return true;
    default:
      return false;
  }
}

bool has_int(uint16_t operation) {
  switch (operation) {
    case TN_OP_ADD:
    case TN_OP_SUB:
    case TN_OP_MUL:
    case TN_OP_MIN:
    case TN_OP_MAX:
    case TN_OP_EQUAL:
    case TN_OP_LESS:
    case TN_OP_LESS_EQUAL:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool has_code(const KernelKey& key) {
  if (key.isa == Isa::kBaseline) return false;
  if (key.operation == kCopy || key.operation == TN_OP_SELECT) return true;
  // AVX2 has few instructions for ints of 64 bits, and neither set converts floats as the kernels do.
  if (key.operation == TN_OP_CAST)
    return key.kind == TN_LOGICAL || key.to == TN_LOGICAL || (key.kind == TN_INT && !key.wide);
  if (key.kind == TN_FLOAT) return has_float(key.operation);
  if (key.kind == TN_INT) return !key.wide && has_int(key.operation);
  return key.operation == TN_OP_AND || key.operation == TN_OP_OR || key.operation == TN_OP_NOT;
}

VectorCode::VectorCode(x86::Compiler& compiler, Isa isa, bool wide, const x86::Gp& table)
    : compiler_(compiler),
      wide_(wide),
      avx512_(isa == Isa::kAvx512),
      lane_bytes_(wide ? 8 : 4),
      vector_bytes_(avx512_ ? 64 : 32),
      table_(table) {}

x86::Vec VectorCode::make() const { return avx512_ ? x86::Vec(compiler_.newZmm()) : x86::Vec(compiler_.newYmm()); }

template <class Emit>
void VectorCode::in_first_lines(const Emit& emit) {
  asmjit::BaseNode* const here = compiler_.setCursor(first_lines_);
  emit();
  const bool only = here == first_lines_;
  first_lines_ = compiler_.cursor();
  if (!only) compiler_.setCursor(here);
}

x86::Gp VectorCode::address(int32_t cursor) {
  x86::Gp& made = addresses_[cursor];
  if (!made.isValid())
    in_first_lines([&] {
      made = compiler_.newIntPtr();
      compiler_.mov(made, x86::ptr(table_, cursor * static_cast<int32_t>(sizeof(uintptr_t))));
    });
  return made;
}

x86::Vec VectorCode::spread(const x86::Gp& number) {
  const x86::Vec made = make();
  const x86::Gp lane = wide_ ? x86::Gp(number.r64()) : x86::Gp(number.r32());
  const Id instruction = pick(Inst::kIdVpbroadcastd, Inst::kIdVpbroadcastq);
  if (avx512_) {
    compiler_.emit(instruction, made, lane);
  } else {
    const x86::Xmm first = compiler_.newXmm();
    compiler_.emit(pick(Inst::kIdVmovd, Inst::kIdVmovq), first, lane);
    compiler_.emit(instruction, made, first);
  }
  return made;
}

x86::Vec VectorCode::constant(uint64_t lane) {
  x86::Vec& made = constants_[lane];
  if (!made.isValid())
    in_first_lines([&] {
      const x86::Gp bits = compiler_.newUInt64();
      compiler_.mov(bits, lane);
      made = spread(bits);
    });
  return made;
}

x86::Vec VectorCode::lane_numbers() {
  if (!lane_numbers_.isValid())
    in_first_lines([&] {
      std::array<int64_t, 8> wide = {0, 1, 2, 3, 4, 5, 6, 7};
      std::array<int32_t, 16> narrow = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
      const void* numbers = wide_ ? static_cast<const void*>(wide.data()) : narrow.data();
      const auto bytes = static_cast<size_t>(vector_bytes_);
      lane_numbers_ = make();
      compiler_.emit(Inst::kIdVmovups, lane_numbers_,
                     compiler_.newConst(asmjit::ConstPoolScope::kLocal, numbers, bytes));
    });
  return lane_numbers_;
}

x86::Mem VectorCode::memory(int32_t cursor, const x86::Gp& at) {
  return x86::ptr(address(cursor), at, wide_ ? 3U : 2U);
}

void VectorCode::limit(const x86::Gp& count) {
  limited_ = true;
  limit_ = {};
  const x86::Vec numbers = lane_numbers(), limit = spread(count);
  if (avx512_) {
    limit_.mask = compiler_.newKw();
    compiler_.emit(pick(Inst::kIdVpcmpgtd, Inst::kIdVpcmpgtq), limit_.mask, limit, numbers);
  } else {
    limit_.vector = apply(pick(Inst::kIdVpcmpgtd, Inst::kIdVpcmpgtq), limit, numbers);
  }
}

Lanes VectorCode::load(int32_t cursor, const x86::Gp& at) {
  const x86::Vec made = make();
  const x86::Mem from = memory(cursor, at);
  const Id move = pick(Inst::kIdVmovups, Inst::kIdVmovupd);
  if (!limited_) {
    compiler_.emit(move, made, from);
  } else if (avx512_) {
    compiler_.k(limit_.mask).z().emit(move, made, from);
  } else {
    compiler_.emit(pick(Inst::kIdVmaskmovps, Inst::kIdVmaskmovpd), made, limit_.vector, from);
  }
  return {made, {}};
}

Lanes VectorCode::broadcast(int32_t cursor) {
  x86::Vec& made = broadcasts_[cursor];
  if (!made.isValid()) {
    const x86::Gp from = address(cursor);
    in_first_lines([&] {
      made = make();
      compiler_.emit(pick(Inst::kIdVbroadcastss, Inst::kIdVbroadcastsd), made, x86::ptr(from));
    });
  }
  return {made, {}};
}

void VectorCode::store(int32_t cursor, const x86::Gp& at, Lanes& value) {
  const x86::Mem to = memory(cursor, at);
  const x86::Vec& from = vector_of(value);
  const Id move = pick(Inst::kIdVmovups, Inst::kIdVmovupd);
  if (!limited_) {
    compiler_.emit(move, to, from);
  } else if (avx512_) {
    compiler_.k(limit_.mask).emit(move, to, from);
  } else {
    compiler_.emit(pick(Inst::kIdVmaskmovps, Inst::kIdVmaskmovpd), to, limit_.vector, from);
  }
}

x86::Vec VectorCode::apply(Id instruction, const x86::Vec& a, const x86::Vec& b) {
  const x86::Vec made = make();
  compiler_.emit(instruction, made, a, b);
  return made;
}

x86::Vec VectorCode::apply(Id instruction, const x86::Vec& a) {
  const x86::Vec made = make();
  compiler_.emit(instruction, made, a);
  return made;
}

const x86::Vec& VectorCode::vector_of(Lanes& value) {
  if (!value.vector.isValid()) {
    value.vector = make();
    compiler_.emit(pick(Inst::kIdVpmovm2d, Inst::kIdVpmovm2q), value.vector, value.mask);
  }
  return value.vector;
}

const x86::KReg& VectorCode::mask_of(Lanes& value) {
  if (!value.mask.isValid()) {
    value.mask = compiler_.newKw();
    compiler_.emit(pick(Inst::kIdVpmovd2m, Inst::kIdVpmovq2m), value.mask, value.vector);
  }
  return value.mask;
}

// predicate: of floats. Of ints kEqual, kLess, kLessEqual, kNotEqualOrUnordered.
Lanes VectorCode::compare(bool is_float, int predicate, const x86::Vec& a, const x86::Vec& b) {
  if (avx512_) {
    const x86::KReg made = compiler_.newKw();
    const Id floats = pick(Inst::kIdVcmpps, Inst::kIdVcmppd), ints = pick(Inst::kIdVpcmpd, Inst::kIdVpcmpq);
    // Ints have predicates of their own: 0 is equal, 1 less, 2 less or equal, 4 not equal.
    const int of_ints = predicate == kLess ? 1 : predicate == kLessEqual ? 2 : predicate;
    compiler_.emit(is_float ? floats : ints, made, a, b, asmjit::Imm(is_float ? predicate : of_ints));
    return {{}, made};
  }
  if (is_float) {
    const x86::Vec made = make();
    compiler_.emit(pick(Inst::kIdVcmpps, Inst::kIdVcmppd), made, a, b, asmjit::Imm(predicate));
    return {made, {}};
  }
  const Id equal = pick(Inst::kIdVpcmpeqd, Inst::kIdVpcmpeqq), greater = pick(Inst::kIdVpcmpgtd, Inst::kIdVpcmpgtq);
  if (predicate == kEqual) return {apply(equal, a, b), {}};
  if (predicate == kLess) return {apply(greater, b, a), {}};
  const x86::Vec inverse = predicate == kLessEqual ? apply(greater, a, b) : apply(equal, a, b);
  return {apply(Inst::kIdVpxor, inverse, constant(all_bits(wide_))), {}};
}

x86::Vec VectorCode::select(Lanes& condition, const x86::Vec& yes, const x86::Vec& no) {
  const x86::Vec made = make();
  if (avx512_) {
    compiler_.k(mask_of(condition)).emit(pick(Inst::kIdVblendmps, Inst::kIdVblendmpd), made, no, yes);
  } else {
    compiler_.emit(pick(Inst::kIdVblendvps, Inst::kIdVblendvpd), made, no, yes, vector_of(condition));
  }
  return made;
}

x86::Vec VectorCode::fused(uint16_t operation, const x86::Vec& a, const x86::Vec& b, const x86::Vec& c) {
  const Id instruction = operation == kMulAdd   ? pick(Inst::kIdVfmadd231ps, Inst::kIdVfmadd231pd)
                         : operation == kMulSub ? pick(Inst::kIdVfmsub231ps, Inst::kIdVfmsub231pd)
                                                : pick(Inst::kIdVfnmadd231ps, Inst::kIdVfnmadd231pd);
  const x86::Vec made = apply(Inst::kIdVmovaps, c);
  compiler_.emit(instruction, made, a, b);
  return made;
}

Lanes VectorCode::of_floats(const KernelKey& key, Lanes& a, Lanes& b, Lanes& c) {
  const x86::Vec& x = a.vector;
  switch (key.operation) {
    case TN_OP_ADD:
      return {apply(pick(Inst::kIdVaddps, Inst::kIdVaddpd), x, b.vector), {}};
    case TN_OP_SUB:
      return {apply(pick(Inst::kIdVsubps, Inst::kIdVsubpd), x, b.vector), {}};
    case TN_OP_MUL:
      return {apply(pick(Inst::kIdVmulps, Inst::kIdVmulpd), x, b.vector), {}};
    case TN_OP_DIV:
      return {apply(pick(Inst::kIdVdivps, Inst::kIdVdivpd), x, b.vector), {}};
    case TN_OP_MIN:
    case TN_OP_MAX: {  // the instruction returns b if either is NaN
      const Id extreme =
          key.operation == TN_OP_MAX ? pick(Inst::kIdVmaxps, Inst::kIdVmaxpd) : pick(Inst::kIdVminps, Inst::kIdVminpd);
      const x86::Vec made = apply(extreme, x, b.vector);
      Lanes nan = compare(true, kUnordered, x, x);
      return {select(nan, x, made), {}};
    }
    case TN_OP_NEG:
      return {apply(Inst::kIdVxorps, x, constant(sign_bit(wide_))), {}};
    case TN_OP_ABS:
      return {apply(Inst::kIdVandps, x, constant(sign_bit(wide_) - 1)), {}};
    case TN_OP_SQRT:
      return {apply(pick(Inst::kIdVsqrtps, Inst::kIdVsqrtpd), x), {}};
    case TN_OP_EQUAL:
      return compare(true, kEqual, x, b.vector);
    case TN_OP_LESS:
      return compare(true, kLess, x, b.vector);
    case TN_OP_LESS_EQUAL:
      return compare(true, kLessEqual, x, b.vector);
    case TN_OP_IS_FINITE:
      return compare(true, kLess, apply(Inst::kIdVandps, x, constant(sign_bit(wide_) - 1)), constant(infinity(wide_)));
    default:
      return {fused(key.operation, x, b.vector, c.vector), {}};
  }
}

Lanes VectorCode::of_ints(uint16_t operation, Lanes& a, Lanes& b) {
  switch (operation) {
    case TN_OP_ADD:
      return {apply(Inst::kIdVpaddd, a.vector, b.vector), {}};
    case TN_OP_SUB:
      return {apply(Inst::kIdVpsubd, a.vector, b.vector), {}};
    case TN_OP_MUL:
      return {apply(Inst::kIdVpmulld, a.vector, b.vector), {}};
    case TN_OP_MIN:
      return {apply(Inst::kIdVpminsd, a.vector, b.vector), {}};
    case TN_OP_MAX:
      return {apply(Inst::kIdVpmaxsd, a.vector, b.vector), {}};
    case TN_OP_EQUAL:
      return compare(false, kEqual, a.vector, b.vector);
    case TN_OP_LESS:
      return compare(false, kLess, a.vector, b.vector);
    default:
      return compare(false, kLessEqual, a.vector, b.vector);
  }
}

Lanes VectorCode::of_bools(uint16_t operation, Lanes& a, Lanes& b) {
  if (avx512_) {
    const x86::KReg made = compiler_.newKw();
    if (operation == TN_OP_NOT) {
      compiler_.emit(Inst::kIdKnotw, made, mask_of(a));
    } else {
      compiler_.emit(operation == TN_OP_AND ? Inst::kIdKandw : Inst::kIdKorw, made, mask_of(a), mask_of(b));
    }
    return {{}, made};
  }
  if (operation == TN_OP_NOT) return {apply(Inst::kIdVpxor, a.vector, constant(all_bits(wide_))), {}};
  return {apply(operation == TN_OP_AND ? Inst::kIdVpand : Inst::kIdVpor, a.vector, b.vector), {}};
}

Lanes VectorCode::cast(uint8_t from, uint8_t to, Lanes& a) {
  if (to == TN_LOGICAL) return compare(from == TN_FLOAT, kNotEqualOrUnordered, a.vector, constant(0));
  if (from == TN_INT) return {apply(Inst::kIdVcvtdq2ps, a.vector), {}};
  return {select(a, constant(to == TN_FLOAT ? one(wide_) : 1), constant(0)), {}};
}

Lanes VectorCode::compute(const KernelKey& key, Lanes& a, Lanes& b, Lanes& c) {
  if (key.operation == kCopy) return a;
  if (key.operation == TN_OP_SELECT) return {select(a, vector_of(b), vector_of(c)), {}};
  if (key.operation == TN_OP_CAST) return cast(key.kind, key.to, a);
  if (key.kind == TN_LOGICAL) return of_bools(key.operation, a, b);
  return key.kind == TN_INT ? of_ints(key.operation, a, b) : of_floats(key, a, b, c);
}

}  // namespace tenon::cpu
#endif
