/* Tenon SDK, a draft: communicators. SPDX-License-Identifier: MIT
 *
 * A communicator carries messages between the processes of a training, the ranks 0 .. ranks - 1 of its world. It sends
 * and receives between two ranks, and does nothing else: the host adds values in an order of its own, so that a
 * training has the same results over every communicator.
 *
 * Threads: one thread of the host calls every function from open to close ([comm]); only wake is [any]. Between two
 * calls nothing needs to move. No function waits longer than its caller says, whatever other ranks do: a rank may be
 * killed, stopped or cut off at any moment.
 *
 * Call order for one object: open (world | send | receive | progress)* close, or abort in place of close. */
#ifndef TENON_DRAFT_COMM_H
#define TENON_DRAFT_COMM_H

#include <tenon/attribute.h>
#include <tenon/services.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the declarations of this header (docs/interface-1.0.md, drafts). */
#define TN_COMM_DRAFT 0x2348c2fcu

/* What a communicator is like. Bits of tn_comm_description.traits. */
enum {
  TN_COMM_SURVIVES = 1,       /* a lost rank is an event, and messages with the others go on */
  TN_COMM_AUTHENTICATED = 2,  /* only who knows the secret takes part */
  TN_COMM_ENCRYPTED = 4,      /* nobody else reads or changes messages */
  TN_COMM_ONE_PER_PROCESS = 8 /* at most one object in the life of a process, such as the world of MPI */
};

typedef struct tn_comm_description {
  uint32_t size;
  uint32_t attributes_count;
  const char* type; /* "mpich"; one per host */
  const char* doc;  /* one line */
  const tn_attribute* const* attributes;
  uint32_t traits; /* TN_COMM_* that every object has */
  uint32_t reserved;
} tn_comm_description;

/* The arguments of open. What it points to is valid during open, or where said until close. */
typedef struct tn_comm_open {
  uint32_t size;
  int32_t rank; /* of this process; -1: as the launcher of the processes says */
  int32_t
      ranks; /* of the world, at least 1; -1: as the launcher says. If it is another world: TN_INVALID, naming both */
  uint32_t epoch;                  /* of this start: processes of another epoch do not join */
  const tn_services* services;     /* valid until close */
  const tn_errors* errors;         /* valid until close; also used by the later calls */
  const tn_attributes* attributes; /* by the description */
  const char* address;   /* where rank 0 listens and the others find it, "tcp://10.0.0.4:5000" or "ipc:///folder/name";
                          * null: the launcher connects the ranks */
  const char* listen;    /* the host name or address of this process for other ranks; null: the plugin's choice */
  const uint8_t* secret; /* [secret_bytes], copied; null: none */
  uint32_t secret_bytes;
  int32_t deadline_ms; /* open returns TN_IO, naming the missing ranks, if not all are connected by then */
  int32_t silence_ms;  /* a rank of which nothing, not even a heartbeat, is heard for so long is lost; 0: none is */
  int32_t reserved;
  const volatile int32_t* cancel; /* not 0: open returns TN_CANCELLED soon. Valid until close */
  void* user;                     /* of the type's table */
} tn_comm_open;

typedef struct tn_comm_world {
  uint32_t size;
  int32_t rank;
  int32_t ranks;
  uint32_t traits;     /* TN_COMM_* of this object: also those that follow from the arguments of open */
  uint64_t most_bytes; /* of one message, at least 1 MiB */
  uint64_t refused;    /* connections and messages of strangers that were dropped so far */
} tn_comm_world;

/* A message, or room for one: `bytes` of host memory, borrowed until its request ends. Those of a pair of ranks on one
 * channel arrive whole and in their order, and the i-th receive gets the i-th message; those on other channels may
 * overtake them. */
typedef struct tn_comm_message {
  uint32_t size;
  int32_t peer;     /* another rank */
  uint32_t channel; /* 0 .. 1023 */
  uint32_t reserved;
  void* data; /* a send does not change it; not null even for 0 bytes */
  uint64_t bytes;
} tn_comm_message;

enum {
  TN_COMM_DONE = 0, /* a request has ended: `request`, `status` */
  TN_COMM_LOST =
      1, /* `peer` is lost, until it returns: its requests have ended, or end next, with TN_IO, and so do new ones */
  TN_COMM_WOKEN = 2,   /* wake was called since the last such event */
  TN_COMM_RETURNED = 3 /* a new process has joined as `peer`, which was lost: messages go on, without any of before. A
                        * communicator with TN_COMM_SURVIVES may let a lost rank but 0 return, and then lets it join
                        * without the ranks that are lost */
};
typedef struct tn_comm_event {
  int32_t kind;
  int32_t peer;     /* of DONE, too */
  uint64_t request; /* of DONE; else 0 */
  tn_status
      status; /* of DONE: TN_OK; TN_IO: the peer is lost; TN_BAD_DATA: the message has other bytes than the room */
  int32_t reserved;
} tn_comm_event; /* frozen: without a size, because events come in arrays */

/* Immutable; lives as long as the plugin is mapped. */
typedef struct tn_comm_type {
  uint32_t size;
  uint32_t draft; /* TN_COMM_DRAFT */
  const tn_comm_description* description;
  /* [comm] Connects all ranks. Changes no signal handler, no environment and no limit of the process for longer than
   * the call. On failure reports the reason and does not write *comm. */
  tn_status (*open)(const tn_comm_open* open, void** comm);
  /* [comm] The caller sets world->size. */
  tn_status (*world)(void* comm, tn_comm_world* world);
  /* [comm] Begin a transfer, and return without waiting for the peer. *request receives a number that is not 0 and that
   * no unfinished request has; its end is an event of progress. */
  tn_status (*send)(void* comm, const tn_comm_message* message, uint64_t* request);
  tn_status (*receive)(void* comm, const tn_comm_message* message, uint64_t* request);
  /* [comm] Lets messages move, and waits at most timeout_us until there is an event. Writes at most `capacity` events,
   * at least 1, and sets *count; the others are for the next call. TN_OK without an event, too. */
  tn_status (*progress)(void* comm, int64_t timeout_us, tn_comm_event* events, uint32_t capacity, uint32_t* count);
  /* [any] Ends a progress that waits, or the next one, with the event TN_COMM_WOKEN. Never fails. */
  void (*wake)(void* comm);
  /* [comm] Ends the processes of the world as soon as the engine can, with this exit code where it passes one on; an
   * engine with TN_COMM_SURVIVES just leaves. May end the calling process. The object is freed if it returns. */
  void (*abort)(void* comm, int32_t exit_code);
  /* [comm] Leaves the world and frees the object; its requests have ended, or are dropped. After timeout_us it gives up
   * on the other ranks. */
  void (*close)(void* comm, int64_t timeout_us);
  /* [any] Returns an optional table by id, or null. The function may be null. */
  const void* (*extension)(void* user, const char* id);
  void* user; /* given back as tn_comm_open.user */
} tn_comm_type;

#ifdef __cplusplus
}
#endif
#endif
