// The first process of a pod: of the one with the launcher, or of another one with an agent (docs/kubernetes.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::launch {

constexpr int kUnheldExit = 202;  // of a training that nobody has held

// Runs `tenon-launch --pod launcher WORDS...`, `program WORDS...` or `agent`, and returns the exit code: copies the job
// from the folder TENON_POD_JOB to TENON_POD_FOLDER, and goes on there. TENON_POD_SECRET: a file. TENON_POD_VERSION: of
// tenon where the training was started, which must be that of this one.
// - launcher: `tenon train WORDS...` with --nodes, the first of which is this pod; listens at TENON_POD_LISTEN,
//   host:port, for the agents of the others.
// - agent: connects with TENON_POD_LAUNCHER, host:port, as the node TENON_POD_NODE, again whenever it loses the
// launcher,
//   until that says that the training has ended.
// - program: runs the words as process TENON_POD_FIRST + TENON_POD_INDEX of TENON_POD_PROCESSES; process 0 listens at
//   TENON_POD_LAUNCHER for the others, which listen at TENON_POD_IP.
// Launcher and process 0 of programs, unless TENON_POD_DETACHED is set, wait for `tenon-launch --give` to have handed
// out the results: those of the job, or the file TENON_POD_RESULT.
int run_pod(const cli::Arguments& arguments);

// Runs `tenon-launch --before-stop`, the hook before the SIGTERM of a pod: waits until the first process has its
// handlers, at most 20 s. The kernel drops a signal for which the first process of a namespace has no handler, and
// Kubernetes sends it once.
int run_before_stop();

// Runs `tenon-launch --give` in the pod of the launcher: writes to standard output a line of JSON, {"image": {...}}
// with what image_here() returns, waits for the end of the training, and writes a line of JSON, {"exit": 0, "files":
// [{"what": "save", "path": "model.safetensors", "bytes": 1234}]}, the bytes of the files, and their BLAKE2b of 32
// bytes. Then it reads a line: "taken" lets the pod end. As long as it runs, somebody holds the training: once nobody
// has for a minute, it ends.
int run_give();

}  // namespace tenon::launch
