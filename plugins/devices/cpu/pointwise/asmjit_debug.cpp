// What AsmJit calls when one of its assertions fails. Its own functions print, and Debian's archive has them in an
// object that a shared library cannot be linked with. SPDX-License-Identifier: Apache-2.0
#ifdef TENON_CPU_ASSEMBLES
#include <asmjit/core.h>

#include <exception>

namespace asmjit::DebugUtils {

const char* errorAsString(Error) noexcept { return ""; }
void debugOutput(const char*) noexcept {}
void assertionFailed(const char*, int, const char*) noexcept { std::terminate(); }

}  // namespace asmjit::DebugUtils
#endif
