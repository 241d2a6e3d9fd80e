#!/usr/bin/env bash
# Runs examples/cluster/slurm.sh in a Slurm of one node on this machine, and compares the model with that of one process:
# tests/long/slurm.sh BUILD. Needs root, and Debian's slurm-wlm and munge. Then a job by Open MPI's hostfile.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build="$(cd "${1:?expected the folder of a build}" && pwd)"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
[[ $EUID -eq 0 ]] && command -v slurmctld slurmd munged >/dev/null || {
  echo "slurm.sh: needs root, slurm-wlm and munge" >&2
  exit 66
}

folder="$(mktemp -d)"
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder"/{state,spool,run}
host="$(hostname -s)"
cpus="$(nproc)"
cat >"$folder/slurm.conf" <<TEXT
ClusterName=alone
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
TEXT
export SLURM_CONF="$folder/slurm.conf"
if ! munge -n </dev/null >/dev/null 2>&1; then
  mkdir -p /run/munge && chown munge: /run/munge
  munged --force
fi
slurmctld -D -i >"$folder/slurmctld.log" 2>&1 &
pids+=($!)
slurmd -D -N "$host" >"$folder/slurmd.log" 2>&1 &
pids+=($!)
for _ in $(seq 60); do
  [[ "$(sinfo -h -o %T 2>/dev/null)" == idle ]] && break
  sleep 1
done
sinfo

cp "$root/examples/cluster/slurm.sh" "$folder"
export TENON="$build/bin/tenon"
cd "$folder"
PYTHONPATH="$root/tests/cluster" "$build/venv-cluster/bin/python" - <<'TEXT'
import pathlib
import training
training.write_data(pathlib.Path("data"))
pathlib.Path("job.toml").write_text(training.JOB.format(passes=3, data="data/train.csv"))
TEXT
"$TENON" train job.toml --save one.safetensors --quiet
sbatch --wait --output=output slurm.sh job.toml || { cat output slurmctld.log slurmd.log; exit 1; }
cat output
cmp model.safetensors one.safetensors
! ls .tenon-secret-* 2>/dev/null
echo "slurm: the bytes of one process"

rm model.safetensors
mpirun.openmpi --allow-run-as-root --oversubscribe --hostfile "$root/examples/cluster/hostfile" "$TENON" train job.toml
cmp model.safetensors one.safetensors
echo "mpirun: the bytes of one process"
