/* What MPI_Allreduce takes for sums of so many KiB: the peer of bench_exchange. SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double median(float* numbers, int count, int rounds) {
  double* const seconds = malloc((size_t)rounds * sizeof *seconds);
  double result;
  for (int round = -rounds / 4; round < rounds; ++round) {
    const double began = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (round >= 0) seconds[round] = MPI_Wtime() - began;
  }
  qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
  result = seconds[rounds / 2];
  free(seconds);
  return result;
}

int main(int argc, char** argv) {
  const int sizes[] = {64, 400, 1024, 16384}; /* KiB */
  float* const numbers = calloc(16384U << 8U, sizeof *numbers);
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 4; ++i) {
    const double seconds = median(numbers, sizes[i] << 8, sizes[i] > 1024 ? 40 : 400);
    if (rank == 0) printf("%s\"%d\": %.6f%s", i == 0 ? "{" : ", ", sizes[i], seconds, i == 3 ? "}\n" : "");
  }
  MPI_Finalize();
  free(numbers);
  return 0;
}
