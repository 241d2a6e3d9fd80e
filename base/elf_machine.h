// The processors that ELF files name. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace tenon::base {

#if defined(__x86_64__)
inline constexpr uint16_t kElfMachine = EM_X86_64;
#elif defined(__aarch64__)
inline constexpr uint16_t kElfMachine = EM_AARCH64;
#elif defined(__riscv)
inline constexpr uint16_t kElfMachine = EM_RISCV;
#else
#error "say which ELF machine this is"
#endif

// Returns "x86-64", or "ELF machine 183" for a machine without a name here.
[[nodiscard]] inline std::string elf_machine_name(uint16_t machine) {
  constexpr std::array<std::pair<uint16_t, const char*>, 8> kNames = {{{EM_386, "x86 of 32 bits"},
                                                                       {EM_PPC64, "ppc64"},
                                                                       {EM_S390, "s390x"},
                                                                       {EM_ARM, "arm of 32 bits"},
                                                                       {EM_X86_64, "x86-64"},
                                                                       {EM_AARCH64, "aarch64"},
                                                                       {EM_RISCV, "riscv64"},
                                                                       {EM_LOONGARCH, "loongarch64"}}};
  const auto* const named =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& each) { return each.first == machine; });
  return named == kNames.end() ? "ELF machine " + std::to_string(machine) : named->second;
}

}  // namespace tenon::base
