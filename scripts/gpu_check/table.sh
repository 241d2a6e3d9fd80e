# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# The table of gpu-check, on the screen and as Markdown in gpu-check.md of the current folder; logs lie beside it.
# SPDX-License-Identifier: Apache-2.0
failed=0 rows=0 report=""

# Begins the table: open_table <version of Tenon>. Where the folder cannot be written, there is no file.
open_table() {
  local title
  title="$1 on CUDA, $(date -u +%F)"
  echo "$title"
  if printf '%s\n\n| what | result | verdict |\n|---|---|---|\n' "$title" 2>/dev/null >gpu-check.md; then
    report="$PWD/gpu-check.md"
  else
    echo "gpu-check: $PWD cannot be written: the table is printed only, and failed rows leave no logs" >&2
  fi
  local subject result
  while IFS=$'\t' read -r subject result; do row "$subject" "$result" -; done <"$work/facts"
}

# Adds a row: row <subject> <result> <ok|FAILED|->
row() {
  printf '%-44s %-50s %s\n' "$1" "$2" "$3"
  [[ -z "$report" ]] || printf '| %s | %s | %s |\n' "${1//|/\\|}" "${2//|/\\|}" "$3" >>"$report"
  rows=$((rows + 1))
  [[ "$3" != FAILED ]] || failed=$((failed + 1))
}

# Adds a row that failed, and keeps the output of its program as a log: failed_row <subject> <result> <output>
failed_row() {
  local log=""
  if [[ -n "$report" && -s "$3" ]]; then
    log="gpu-check-$(tr -cs '[:alnum:]_\n' - <<<"$1").log"
    cp "$3" "${report%/*}/$log" 2>/dev/null || log=""
  fi
  row "$1" "$2${log:+; $log}" FAILED
}

# A row for what ran out of time: left_out <subject>
left_out() { row "$1" "left out: no time is left" -; }

# Ends the table: close_table <remark>
close_table() {
  local summary="$rows rows, $failed rows failed, $SECONDS s${1:+, $1}"
  echo "$summary"
  [[ -z "$report" ]] || printf '\n%s\n' "$summary" >>"$report"
}
