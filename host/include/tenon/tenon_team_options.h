/* Tenon: the structs of the options of teams. Include <tenon/tenon.h>. Written by
 * host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_TEAM_OPTIONS_H
#define TENON_TENON_TEAM_OPTIONS_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The options of tn_team_join. A draft. */
typedef struct tn_team_options {
  uint32_t size;
  /* Of this start: processes of another epoch do not join. */
  uint32_t epoch;
  /* The number of this process, from 0; -1: as the launcher says. */
  int64_t rank;
  /* Of the team; -1: as the launcher says. */
  int64_t processes;
  /* The type of the communicator, such as "mpich"; null: that of the MPI whose launcher has started this process, else
   * "zmq". */
  const char* comm;
  /* Its attributes, a JSON object; null: none. */
  const char* attributes;
  /* Where process 0 listens and the others find it, such as "tcp://10.0.0.4:5000"; null: the launcher connects the
   * processes. */
  const char* address;
  /* The name or address of this machine for the other processes; null: the choice of the communicator. */
  const char* listen;
  /* A file with the secret of this start, readable by its owner alone, or "fd:7", an inherited descriptor; null: no
   * secret. */
  const char* secret;
  /* For all processes to join. */
  double deadline_seconds;
  /* A process of which nothing is heard for so long is lost; 0: none is. */
  double silence_seconds;
  /* The last processes of the team that own the rows of tables and compute no shards; 0: all processes do both. */
  int64_t servers;
} tn_team_options;

#ifdef __cplusplus
}
#endif
#endif
