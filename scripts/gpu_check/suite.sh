# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# The tests of primitives, as they are and under compute-sanitizer. SPDX-License-Identifier: Apache-2.0

# Every primitive against its definition: the tests that cpu passes, with the device under them.
correctness() {
  local program filter subject out="$work/suite" code count
  while read -r program filter; do
    [[ -z "$emulated" || "$program" != *pointwise_test ]] || continue # minutes on an emulated GPU
    subject="${program#test_devices_}" subject="primitives: ${subject%_test}" code=0
    if (($(seconds_left) < 2)); then
      left_out "$subject"
      continue
    fi
    limited 120 "$tests/$program" --gtest_brief=1 "--gtest_filter=$filter" >"$out" 2>&1 || code=$?
    count="$(sed -n 's/^\[==========\] \([0-9]*\) tests\? from.*/\1/p' "$out")"
    if ((code == 0)) && [[ -n "$count" ]] && grep -q '^\[  PASSED  \]' "$out"; then
      row "$subject" "$count tests" ok
    elif ((code == 124)) && ! grep -q Failure "$out"; then
      if ((limit < 120)); then row "$subject" "not ended in $limit s, no failure so far" -; else
        failed_row "$subject" "not ended in $limit s" "$out"
      fi
    else
      failed_row "$subject" "$(grep -m 1 'Failure\|FAILED\|what()' "$out" || echo "exit code $code")" "$out"
    fi
  done <"$tests/gpu_suite"
}

# Sets `tool` to a compute-sanitizer that runs here, or adds a row that says why there is none.
find_sanitizer() {
  local code=0
  tool="${TENON_COMPUTE_SANITIZER:-}"
  if [[ -z "$tool" && -n "$emulated" ]]; then
    row "compute-sanitizer" "not on an emulated GPU" -
    return 1
  fi
  [[ -n "$tool" ]] || tool="$(command -v compute-sanitizer /usr/local/cuda/bin/compute-sanitizer \
    "$build/cuda/nvidia/cu13/bin/compute-sanitizer" | head -n 1)"
  if [[ -z "$tool" ]]; then
    row "compute-sanitizer" "not found" -
    return 1
  fi
  # One that is older than the driver, or that may not debug here, is no failure of Tenon's.
  limited 60 "$tool" --error-exitcode 3 "$tests/test_gpu_measure" facts >"$work/sanitizer" 2>&1 || code=$?
  ((code != 0 && code != 3)) || return 0
  row "compute-sanitizer" "does not run here: $(grep -m 1 -i 'error' "$work/sanitizer" || echo "exit code $code")" -
  return 1
}

# Each program under each tool, with an equal share of the time that is left, from 5 to 30 seconds. A finding is printed
# when it is made, so a program that was ended without one had none so far.
sanitizer() {
  local tool program filter check out="$work/sanitizer" code finding subject pairs most
  local checks=(memcheck racecheck synccheck)
  find_sanitizer || return
  pairs=$((${#checks[@]} * $(grep -c . "$tests/gpu_suite")))
  while read -r program filter; do
    for check in "${checks[@]}"; do
      subject="${program#test_devices_}" subject="$check: ${subject%_test}" code=0
      most=$(($(seconds_left) / pairs)) pairs=$((pairs - 1))
      ((most >= 5)) || most=5
      ((most <= 30)) || most=30
      if (($(seconds_left) < 2)); then
        left_out "$subject"
        continue
      fi
      limited "$most" "$tool" --tool "$check" --error-exitcode 3 "$tests/$program" --gtest_brief=1 \
        "--gtest_filter=$filter:*.Refuses*" >"$out" 2>&1 || code=$?
      finding="$(sed -n 's/^=* *\(Error\|Invalid\|Barrier error\|Warning: Race\)\(.*\)/\1\2/p' "$out" | head -n 1)"
      if [[ -n "$finding" || ($code -ne 0 && $code -ne 124) ]]; then
        failed_row "$subject" "${finding:-exit code $code}" "$out"
      elif ((code == 124)); then
        row "$subject" "not ended in $limit s, no finding so far" -
      else
        row "$subject" "no finding" ok
      fi
    done
  done <"$tests/gpu_suite"
}
