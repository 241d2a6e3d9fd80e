# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# Trainings on cuda beside cpu. SPDX-License-Identifier: Apache-2.0
counting=() steps_of_pass="" shape="" cost="" rate=""

# The data and the job of the trainings: a perceptron with labels that follow from its inputs.
make_job() {
  local samples=16384 columns=64 hidden=512
  [[ -z "$emulated" ]] || samples=512 columns=16 hidden=32
  awk -v samples="$samples" -v columns="$columns" 'BEGIN {
    srand(1)
    for (i = 0; i < samples; ++i) {
      sum = 0
      for (k = 0; k < columns; ++k) { x = 2 * rand() - 1; sum += x * (k % 3 - 1); printf "%.4f,", x }
      print (sum > 0)
    }
  }' >"$work/data.csv"
  cat >"$work/job.toml" <<END
passes = 4
seed = 1
layer = [{ name = "hidden", type = "fc", inputs = ["x"], size = $hidden, act = "relu" },
         { name = "score", type = "fc", inputs = ["hidden"], size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true }]
updater = { type = "adam" }
[reader.train]
type = "csv"
files = ["data.csv"]
header = false
columns = ["x = c0..c$((columns - 1)): f32", "label = c$columns: i32 < 2"]
batch = 128
shuffle = true
END
  steps_of_pass=$((samples / 128)) shape="$columns-$hidden-2"
}

# Trains a job on a device: train <job> <device> [option...]. Sets cost and rate, of the last pass. Returns the exit
# code.
train() {
  local code=0
  limited 120 env "${counting[@]}" "$tenon" train "$1" --set "device=$2" "${@:3}" \
    >"$work/out" 2>"$work/errors" || code=$?
  ((code == 0)) || return "$code"
  read -r cost rate < <(awk '/^pass/ { cost = $4; rate = $(NF - 1) } END { print cost, rate }' "$work/out")
}

# The row of a training that ended with a code: no_training <subject> <code>
no_training() {
  local without
  without="$(without_kernel "$work/errors")"
  if (($2 == 124)); then
    row "$1" "not ended in $limit s" -
  elif [[ -n "$without" ]]; then
    row "$1" "$without" -
  else
    failed_row "$1" "$(grep -v ^warning "$work/errors" | head -n 1)" "$work/errors"
  fi
}

# What a message says of a layer that has no kernel for cuda; nothing if it says no such thing: without_kernel <file>
without_kernel() {
  sed -n 's/.*\(layer "[^"]*"[^:]*\): it has native kernels only, and none for device "cuda.*/\1/p' "$1" | head -n 1 |
    sed 's/.*/skipped: & has native kernels for cpu alone/'
}

# Trains a job on cpu and cuda, and compares their costs: beside_cpu <subject> <job> [option...]
beside_cpu() {
  local device code costs=() rates=()
  if (($(seconds_left) < 2)); then
    left_out "$1"
    return
  fi
  for device in cpu cuda; do
    code=0
    train "$2" "$device" "${@:3}" || code=$?
    if ((code != 0)); then
      no_training "$1: on $device" "$code"
      return
    fi
    costs+=("$cost") rates+=("$rate")
  done
  row "$1: cost" "${costs[1]}, on cpu ${costs[0]}" \
    "$(awk -v a="${costs[1]}" -v b="${costs[0]}" 'BEGIN { d = a - b; print (d < 1e-3 && d > -1e-3) ? "ok" : "FAILED" }')"
  row "$1: samples/s" "${rates[1]}, on cpu ${rates[0]}" -
}

trainings() {
  make_job
  beside_cpu "training of $shape" "$work/job.toml" --save "$work/one.safetensors"
  two_runs
  driver_calls
  beside_cpu "example fraud, one pass" "$examples/tabular/fraud.toml" --passes 1 --no-save
  beside_cpu "example recommender, one pass" "$examples/recommender/recommender.toml" --passes 1 --no-save
  [[ -z "$emulated" && -d /usr/share/datasets/fashion-mnist ]] || return
  beside_cpu "example fashion_mnist/mlp, one pass" "$examples/fashion_mnist/mlp.toml" --passes 1 --no-save
}

# The same training again.
two_runs() {
  local code=0
  [[ -e "$work/one.safetensors" ]] || return # the first one has failed
  train "$work/job.toml" cuda --save "$work/two.safetensors" || code=$?
  if ((code != 0)); then
    no_training "training: two runs" "$code"
  elif cmp -s "$work/one.safetensors" "$work/two.safetensors"; then
    row "training: two runs" "models are equal byte for byte" ok
  else
    row "training: two runs" "the bytes of the models differ" FAILED
  fi
}

# Calls of the driver for each step: the difference between trainings of four and of two passes.
driver_calls() {
  local counts=() counting passes
  for passes in 2 4; do
    counting=("LD_AUDIT=$tests/test_gpu_count.so" "TENON_COUNTS=$work/counts$passes")
    train "$work/job.toml" cuda --passes "$passes" --no-save || break
    mapfile -t -O "${#counts[@]}" counts < <(od -An -v -t d8 -w8 "$work/counts$passes" 2>/dev/null)
  done
  if ((${#counts[@]} != 8)); then
    row "driver calls of a step" "cannot be counted here" -
    return
  fi
  row "driver calls of a step" "$(awk -v s="$((2 * steps_of_pass))" -v a="${counts[*]}" 'BEGIN {
    split(a, c, " ")
    printf "%.1f launches, %.1f graphs, %.1f waits, %.1f copies", (c[5] - c[1]) / s, (c[6] - c[2]) / s,
      (c[7] - c[3]) / s, (c[8] - c[4]) / s }')" -
}
