# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# The workloads of benchmarks/workloads.toml on cuda: beside PyTorch by benchmarks/run where PyTorch can use the GPU,
# else Tenon's programs alone, which need no Python. SPDX-License-Identifier: Apache-2.0

# Prints a line for each workload on cuda: name, program, mode, unit, and the scale or the count of its figure,
# separated by "|".
workloads() {
  awk '
    function finish() {
      if (name != "" && devices ~ /"cuda"/) print name "|" program "|" mode "|" unit "|" scale "|" count
    }
    /^\[/ {
      finish()
      name = substr($0, 2, index($0, "]") - 2)
      if (name ~ /\./) name = "" # of a kind of device alone
      program = name; mode = unit = scale = count = devices = ""
    }
    /^[a-z]+ = / {
      value = $0
      sub(/^[a-z]+ = /, "", value)
      if ($1 == "devices") devices = value
      gsub(/"/, "", value)
      if ($1 == "program") program = value
      if ($1 == "mode") mode = value
      if ($1 == "unit") unit = value
      if ($1 == "scale") scale = value
      if ($1 == "count") count = value
    }
    END { finish() }' "$benchmarks/workloads.toml"
}

# One round of a workload beside PyTorch: beside_torch <name>. Four processes at most, so that each has its time.
beside_torch() {
  local most out="$work/benchmark" code=0 line
  most=$(($(seconds_left) / 4))
  ((most <= 60)) || most=60
  limited 240 "$torch" -B "$benchmarks/run" "$1" --device cuda --peers pytorch --rounds 1 --noise 1 --seconds "$most" \
    --build "$programs" --python "$torch" >"$out" 2>&1 || code=$?
  line="$(grep -m 1 "^$1, cuda" "$out")"
  if [[ "$line" == "$1, cuda, "* ]]; then
    row "benchmark $1" "${line#"$1, cuda, "}" -
  else
    no_figure "$1" "$code" "$out"
  fi
}

# A workload of Tenon's alone: alone <name> <program> <mode> <unit> <scale> <count>
alone() {
  local out="$work/benchmark" folder="$work/benchmark_data" code=0 seconds
  rm -rf "$folder"
  mkdir "$folder"
  limited 60 "$programs/bin/bench_$2" 1 "$folder" "$3" cuda >"$out" 2>&1 || code=$?
  seconds="$(sed -n 's/^{"seconds": \([0-9.e+-]*\).*/\1/p' "$out")"
  if ((code == 0)) && [[ -n "$seconds" ]]; then
    row "benchmark $1" "$(awk -v s="$seconds" -v scale="$5" -v count="$6" -v unit="$4" \
      'BEGIN { printf "%s: tenon %.3g", unit, count != "" ? count / s : s * scale }')" -
  else
    no_figure "$1" "$code" "$out"
  fi
}

# The row of a workload without a figure: no_figure <name> <code> <output>
no_figure() {
  local without
  without="$(without_kernel "$3")"
  if (($2 == 124)) || grep -q 'did not end in' "$3"; then
    row "benchmark $1" "no figure: not ended in time" -
  elif [[ -n "$without" ]]; then
    row "benchmark $1" "$without" -
  elif grep -q CUDA_ERROR_OUT_OF_MEMORY "$3"; then
    row "benchmark $1" "no figure: it needs more memory than the GPU has left" -
  else
    failed_row "benchmark $1" "$(outcome "$3" "$2")" "$3"
  fi
}

benchmarks() {
  local name program mode unit scale count torch without_torch
  find_torch
  while IFS='|' read -r name program mode unit scale count; do
    [[ -z "$emulated" || "$name" == tiny ]] || continue # others take minutes on an emulated GPU
    if (($(seconds_left) < 10)); then
      left_out "benchmark $name"
    elif [[ -n "$torch" ]]; then
      beside_torch "$name"
    else
      alone "$name" "$program" "$mode" "$unit" "$scale" "$count"
    fi
  done < <(workloads)
}
