/* The bytes of bench_rows by the bare calls of an engine: the peer of bench_rows. SPDX-License-Identifier: Apache-2.0
 *
 * Each process sends what it fetches and pushes in a minibatch in messages of 256 KiB, and receives as much.
 *
 *   mpicc.<name> bare.c                  mpiexec -n 2 a.out
 *   cc -DTENON_ZMQ bare.c -lzmq          a.out RANK ADDRESS */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef TENON_ZMQ
#include <zmq.h>
#else
#include <mpi.h>
#endif

enum { kRows = 32768, kRowBytes = 264 + 264, kMessage = 256 << 10, kSteps = 120 };
enum { kMessages = kRows * kRowBytes / kMessage };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#ifdef TENON_ZMQ
static void* zmq;
static int begin(int argc, char** argv) {
  const int rank = argc > 2 ? atoi(argv[1]) : 0;
  zmq = zmq_socket(zmq_ctx_new(), ZMQ_PAIR);
  if (argc < 3 || (rank == 0 ? zmq_bind(zmq, argv[2]) : zmq_connect(zmq, argv[2])) != 0) exit(64);
  return rank;
}
static void keep(void* data, void* hint) { (void)data, (void)hint; }
static void step(char* to, char* from) {
  zmq_msg_t message;
  for (int i = 0; i < kMessages; ++i) { /* without a copy */
    zmq_msg_init_data(&message, from + (size_t)i * kMessage, kMessage, keep, NULL);
    zmq_msg_send(&message, zmq, 0);
  }
  for (int i = 0; i < kMessages; ++i) {
    zmq_msg_init(&message);
    zmq_msg_recv(&message, zmq, 0);
    memcpy(to + (size_t)i * kMessage, zmq_msg_data(&message), kMessage);
    zmq_msg_close(&message);
  }
}
static void end(void) {}
#else
static int other;
static int begin(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  return rank;
}
static void step(char* to, char* from) {
  MPI_Request requests[2 * kMessages];
  for (int i = 0; i < kMessages; ++i) {
    MPI_Irecv(to + (size_t)i * kMessage, kMessage, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[2 * i]);
    MPI_Isend(from + (size_t)i * kMessage, kMessage, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[2 * i + 1]);
  }
  MPI_Waitall(2 * kMessages, requests, MPI_STATUSES_IGNORE);
}
static void end(void) { MPI_Finalize(); }
#endif

int main(int argc, char** argv) {
  char *const to = calloc(kMessages, kMessage), *const from = calloc(kMessages, kMessage);
  const int rank = begin(argc, argv);
  double began = 0;
  for (int i = -kSteps / 4; i < kSteps; ++i) {
    if (i == 0) began = now();
    step(to, from);
  }
  if (rank == 0) printf("{\"rows\": %.0f}\n", 2.0 * kRows * kSteps / (now() - began));
  fflush(stdout);
  end();
  return 0;
}
