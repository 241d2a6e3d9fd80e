/* Tenon, a draft: several processes that train one model. SPDX-License-Identifier: Apache-2.0
 *
 * Each process has a host, joins the team, and calls tn_train with the same topology, values, data and options and
 * tn_train_options.team. Results depend on tn_train_options.shards, and not on the number of processes. */
#ifndef TENON_TENON_TEAM_H
#define TENON_TENON_TEAM_H

#include <tenon/tenon_base.h>
#include <tenon/tenon_team_options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set size before the call. Texts are borrowed until tn_team_leave. */
typedef struct tn_team_info {
  uint32_t size;
  uint32_t epoch;
  int64_t rank;      /* of this process */
  int64_t processes; /* of the team */
  const char* comm;  /* the type of the communicator */
  uint64_t refused;  /* connections and messages of strangers that were dropped so far */
  int64_t step;      /* of the training that uses the team: updates of its parameters so far; -1: none runs */
  int64_t waits_for; /* the process whose bytes this one waits for, or that does not take its own; -1: none */
  int64_t servers;   /* the last processes, which own the rows of tables and compute no shards; 0: all do both */
} tn_team_info;

/* Returns when all processes are there. TN_NOT_FOUND: no plugin has the communicator; TN_IO names the processes that
 * are missing after the deadline; TN_INVALID: the launcher started another number of processes. */
TENON_API tn_status tn_team_join(tn_host* host, const tn_team_options* options, tn_team* team, tn_error* error);
/* May be called from any thread, while a training uses the team, too. */
TENON_API tn_status tn_team_inspect(tn_host* host, tn_team team, tn_team_info* info, tn_error* error);
/* Leaves the team, whose handle becomes stale. TN_MISUSE while a training uses it. */
TENON_API tn_status tn_team_leave(tn_host* host, tn_team team, tn_error* error);

/* tn_parameters_create for a training of several processes that own the rows of tables between them: parameters whose
 * gradients are row-sparse, which embeddings and bags read by ids of data layers. tables: [tables_count] names of
 * parameters. Results do not depend on the number of processes. A process has the rows that it owns, and values of such
 * a parameter can be set (each process takes its own rows) but not read. Save the model by tn_model_save, which all
 * processes call then, and which is collective: process 0 writes the file, and its path alone counts. With a team of
 * one process, or none ({0, 0}), the parameters are those of tn_parameters_create, and machines check the same
 * conditions. Trainings with such parameters state the same team; in their checkpoints each process writes its
 * rows into a file of its own (docs/checkpoints.md). They take no averages, best values, rounded products, updaters of
 * an application, or clip_norm for tables: each is refused by name. */
TENON_API tn_status tn_team_parameters(tn_host* host, tn_team team, const tn_layer* outputs, uint32_t outputs_count,
                                       uint64_t seed, const char* const* tables, uint32_t tables_count,
                                       tn_parameters* parameters, tn_error* error);

/* A model file or a checkpoint may have the rows of its tables in other files beside it, its parts
 * (docs/model-file.md). Both functions verify all of `from`, and write another file with the same values, a few
 * megabytes at a time.
 * Writes it as one file: with the bytes that it would have had without parts. */
TENON_API tn_status tn_model_join(tn_host* host, const char* from, const char* to, tn_error* error);
/* Writes it with the rows of these tables, [tables_count] names of tensors of float32, and the states of updaters for
 * them, in 1 to 256 parts, which lie in a new folder beside `to`. TN_INVALID if there is a file `to`. */
TENON_API tn_status tn_model_split(tn_host* host, const char* from, const char* to, const char* const* tables,
                                   uint32_t tables_count, uint32_t parts, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
