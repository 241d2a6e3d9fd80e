#!/usr/bin/env bash
# Checks that files need no newer C library than libtenon.so does, so that a system that runs the library runs them, too;
# prints the highest version of each: glibc.sh <nm> <libtenon.so> <file>...
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

nm="$1" library="$2"
shift 2
# "GLIBC_2.34 dladdr": the undefined symbols of a file, by the versions of the C library that have them
needs() {
  "$nm" -D --undefined-only "$1" | sed -nE 's/.* ([^ @]+)@+(GLIBC_[0-9.]+)( .*)?$/\2 \1/p' | sort -V
}
limit="$(needs "$library" | tail -1 | cut -d' ' -f1)"
[[ "$limit" == GLIBC_* ]] || { echo "$library: no version of the C library was found in it"; exit 1; }
echo "$limit $library"
failed=0
for file; do
  highest="$(needs "$file" | tail -1 | cut -d' ' -f1)"
  echo "${highest:-none} $file"
  [[ "$(printf '%s\n' "$limit" "$highest" | sort -V | tail -1)" == "$limit" ]] || {
    printf 'newer than %s of libtenon.so: %s\n' "$limit" "$(needs "$file" | sed -n "s/^$highest //p" | paste -sd' ')"
    failed=1
  }
done
exit "$failed"
