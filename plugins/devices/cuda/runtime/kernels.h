// The kernels of one call: their text, what they read and write, and how they are launched.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cuda {

class Device;

constexpr int64_t kThreads = 256;          // of a block, in every kernel
constexpr int64_t kTile = 4 * kThreads;    // elements that a block takes at once
constexpr int64_t kMostParts = 512;        // of a reduction to one number
constexpr int64_t kMostBlocks = 1 << 16;   // of a launch; blocks take tile after tile
constexpr uint64_t kBufferAlignment = 64;  // of the parts of the workspace
constexpr int64_t kMostItems = INT32_MAX;  // of a sort: positions are ints

// Of the workspaces of NVIDIA's libraries: "at least a multiple of 256 bytes" (cuBLAS 13.0, cublasLtMatmul). The host
// promises multiples of kBufferAlignment, so a workspace for a library is larger by the difference, and what the
// library gets begins at the next multiple of 256.
constexpr uint64_t kLibraryAlignment = 256;
[[nodiscard]] constexpr uint64_t library_workspace_bytes(uint64_t bytes) {
  return bytes == 0 ? 0 : bytes + kLibraryAlignment - kBufferAlignment;
}
[[nodiscard]] inline void* library_workspace(void* workspace) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(workspace);
  return static_cast<uint8_t*>(workspace) + (kLibraryAlignment - address % kLibraryAlignment) % kLibraryAlignment;
}

// The number of pieces of `length` in `count`, from 1 to `most`.
[[nodiscard]] int64_t pieces(int64_t count, int64_t length, int64_t most = kMostBlocks);
// The most that a dimension can be. Throws tn::Failure with `what` ("rows") if it has no bound.
[[nodiscard]] int64_t bound_of(const tn_dim& dim, const char* what);
// A product of bounds. Throws tn::Failure if it is more than 2^60.
[[nodiscard]] int64_t product_of(int64_t a, int64_t b);
// "float32"
[[nodiscard]] std::string dtype_text(tn_dtype dtype);
// The C++ type of an element in memory; null if it is not offered.
[[nodiscard]] const char* element_name(tn_dtype dtype);
// A C++ type of the size of an element, for copies; null if there is none.
[[nodiscard]] const char* bits_name(tn_dtype dtype);
inline bool is_float(tn_dtype dtype) { return dtype == TN_F32 || dtype == TN_F64; }

struct Launch {
  size_t kernel = 0;  // number in the text: kernel0, kernel1 ...
  int64_t blocks = 1;
  int64_t step = 0;  // a.step
};

// The one argument of every kernel is `const __grid_constant__ Arguments a`, whose members are as follows. A list has
// at least one element:
//   const Int64* symbols       value of each symbol, in device memory
//   const Random* random       seed and step, in device memory
//   Fault* fault               of the stream; a kernel does nothing if it is set
//   Int64 step                 of the launch
//   const Int64* table         numbers in device memory; null without numbers
//   Extent sizes[]             size_of(a.sizes[k], a.symbols)
//   const void* inputs[]       null: an absent operand
//   void* outputs[]            may be null if the request is NONE
//   void* buffers[]            parts of the workspace
//   Rows rows                  of the operand that is TN_ROW_SPARSE
//   unsigned char requests[]   TN_REQUEST_* of each output
struct Kernels {
  tn_dtype compute = TN_F32;  // what F is: TN_F32 or TN_F64
  std::string text;
  std::vector<Launch> launches;
  std::vector<int64_t> table;
  std::vector<tn_dim> sizes;
  uint32_t inputs_count = 0, outputs_count = 0;
  std::vector<uint64_t> buffers;    // bytes of each
  std::vector<bool> optional = {};  // [inputs_count] whether it may be absent; empty: none may
  int32_t rows = -1;                // number of the operand that is TN_ROW_SPARSE, outputs after inputs; -1: none
  bool adds = true;                 // whether outputs may have the request ADD
};

// The whole text that is compiled: `kernels.text` after the definitions of its names.
[[nodiscard]] std::string whole_text(const Kernels& kernels);

// Compiles the kernels and fills `prepared`. The call has the trait TN_TRAIT_CAPTURABLE. Throws tn::Failure.
void bind(Device& device, const Kernels& kernels, tn_prepared* prepared);

}  // namespace tenon::cuda
