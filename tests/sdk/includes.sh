#!/usr/bin/env bash
# Checks which headers a target can include: includes.sh <compiler> <file of -I options> <source> <good> <bad>...
# The source with the good header is preprocessed; with each bad one that fails because the header is not found.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

compiler="$1" folders="$2" source="$3"
preprocess() { "$compiler" -std=c++20 -E "@$folders" "-DTENON_HEADER=<$1>" "$source" -o /dev/null 2>&1; }

if ! output="$(preprocess "$4")"; then
  printf '<%s> must be found with %s:\n%s\n' "$4" "$folders" "$output"
  exit 1
fi
for bad in "${@:5}"; do
  if output="$(preprocess "$bad")"; then
    printf '<%s> must not be found with %s\n' "$bad" "$folders"
    exit 1
  fi
  # GCC and clang: "core/error.h: No such file or directory", "'core/error.h' file not found".
  if ! grep -qE "fatal error: '?$bad('? file not found|: No such file)" <<<"$output"; then
    printf '<%s> fails for another reason with %s:\n%s\n' "$bad" "$folders" "$output"
    exit 1
  fi
done
