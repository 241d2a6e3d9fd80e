/* A libcublas for tests of gpu_check: products on the emulated GPU, whose memory is the host's. Matrices are stored by
 * columns, C [m, n] = alpha A [m, k] B [k, n] + beta C. SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

int cublasCreate_v2(void** handle) {
  static int one;
  *handle = &one;
  return 0;
}
int cublasDestroy_v2(void* handle) { return handle == NULL; }
int cublasSetStream_v2(void* handle, void* stream) { return handle == NULL || stream == NULL; }
int cublasSgemm_v2(void* handle, int transpose_a, int transpose_b, int m, int n, int k, const float* alpha,
                   const float* a, int a_stride, const float* b, int b_stride, const float* beta, float* c,
                   int c_stride) {
  if (handle == NULL || transpose_a != 0 || transpose_b != 0 || a_stride < m || b_stride < k || c_stride < m) return 7;
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < m; ++row) {
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += (double)a[row + (ptrdiff_t)i * a_stride] * b[i + (ptrdiff_t)column * b_stride];
      float* const to = c + row + (ptrdiff_t)column * c_stride;
      *to = (float)(*alpha * sum + (*beta == 0 ? 0 : *beta * *to));
    }
  return 0;
}
