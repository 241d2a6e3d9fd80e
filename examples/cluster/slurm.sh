#!/bin/bash
# A training by the processes of a job of Slurm:
#   sbatch --ntasks=8 slurm.sh job.toml
# The folder from which it is submitted is one that all machines share. After a requeue the training goes on from its
# last checkpoint, if the job has the table [checkpoint]; with shards in the job the model has the same bits for any
# number of tasks. SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=tenon
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --signal=TERM@60
set -euo pipefail

job="${1:?expected a job, such as job.toml}"
tenon="${TENON:-tenon}"

# Who has the secret can join: only this user may read it, and it is gone with the job.
umask 077
secret="$(mktemp "$PWD/.tenon-secret-XXXXXX")"
trap 'rm -f "$secret"' EXIT
head -c 32 /dev/urandom >"$secret"
export TENON_TEAM_SECRET="$secret"

resume=()
if grep -q '^\[checkpoint\]' "$job"; then resume=(--resume); fi
srun --kill-on-bad-exit=1 "$tenon" train "$job" --threads "${SLURM_CPUS_PER_TASK:-1}" "${resume[@]}"
