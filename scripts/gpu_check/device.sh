# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# The device of gpu-check: whether it can be used, what it is, and its speeds. SPDX-License-Identifier: Apache-2.0
emulated=""

# Asks the device what it is, with one kernel, into $work/facts. Ends the check if it cannot be used.
look_at_device() {
  local code=0 folders
  facts || code=$?
  # Libraries that are there, but not where the dynamic linker looks for them.
  if ((code != 0)) || grep -q $'\tnot found$' "$work/facts"; then
    folders="$(library_folders | tr '\n' ':')"
    if [[ -n "$folders" ]]; then
      export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${folders%:}"
      code=0
      facts || code=$?
    fi
  fi
  if ((code != 0)); then
    local message
    message="$(tail -n 1 "$work/facts.errors")"
    ((code != 124)) || message="the device did not answer in $limit s"
    mapfile -t reasons < <(device_files)
    refuse "the GPU cannot be used: ${message:-test_gpu_measure ended with code $code}" "${reasons[@]}"
  fi
  if grep -q $'^GPU\temulated' "$work/facts"; then emulated=1; fi
}

facts() { limited 60 "$tests/test_gpu_measure" facts >"$work/facts" 2>"$work/facts.errors"; }

# Prints what keeps this user from the GPU, as far as the system shows it.
device_files() {
  local folder="${TENON_GPU_DEVICES:-/dev}" file why
  [[ -z "${CUDA_VISIBLE_DEVICES+set}" ]] || echo "CUDA_VISIBLE_DEVICES is \"$CUDA_VISIBLE_DEVICES\""
  [[ ! -e "$folder/dxg" ]] || return # Windows has other files
  if [[ ! -e "$folder/nvidiactl" ]]; then
    echo "there is no $folder/nvidiactl: the driver's kernel module is not loaded, or this container was started" \
      "without its GPU (docker run --gpus all)"
  fi
  for file in "$folder"/nvidiactl "$folder"/nvidia-uvm "$folder"/nvidia[0-9]*; do
    [[ -e "$file" ]] || continue
    why="$({ : <>"$file"; } 2>&1)" ||
      echo "$(id -un 2>/dev/null || id -u) cannot open $file: ${why##*: } ($(stat -c '%A, owner %U, group %G' "$file"))"
  done
}

# Repeated results, and speeds.
measure() {
  local exponent=26 out="$work/measure" code=0 subject result verdict
  [[ -z "$emulated" ]] || exponent=10
  limited 120 "$tests/test_gpu_measure" "$exponent" >"$out" 2>"$out.errors" || code=$?
  while IFS=$'\t' read -r subject result verdict; do row "$subject" "$result" "$verdict"; done <"$out"
  if ((code == 124)); then
    row "measurements" "not ended in $limit s" -
  elif ((code > 1)) || [[ -s "$out.errors" ]]; then
    failed_row "measurements" "$(outcome "$out.errors" "$code")" "$out.errors"
  fi
}

# What a program that failed says: its last line, else its exit code: outcome <errors> <code>
outcome() {
  local words
  words="$(tail -n 1 "$1" | head -c 200)"
  echo "${words:-exit code $2}"
}
