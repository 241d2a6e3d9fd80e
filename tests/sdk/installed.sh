#!/usr/bin/env bash
# Installs Tenon and checks what is there: library, headers, and the pages that they mention:
#   installed.sh <cmake> <build folder> <work folder> <readelf>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" readelf="$4"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
for file in bin/tenon lib/libtenon.so lib/libtenon.so.0 lib/libtenon_arrow.so.0 include/tenon/tenon.h include/tenon/tenon.hpp include/tenon/tenon_arrow.h include/tenon/plugin.hpp; do
  # The library folder has another name on some systems.
  if [[ -z "$(find "$work/prefix" -path "*/${file#lib/}" -print -quit)" ]]; then
    echo "not installed: $file"
    exit 1
  fi
done
library="$(find "$work/prefix" -name libtenon.so)"
if [[ "$(readlink "$library")" != libtenon.so.0 ]] || ! "$readelf" -d "$library" | grep -q 'SONAME.*\[libtenon.so.0\]' ||
  ! "$readelf" -d "$work/prefix/bin/tenon" | grep -q 'NEEDED.*\[libtenon.so.0\]'; then
  echo "the library is not installed as libtenon.so.0 with a link libtenon.so, or the program needs another name"
  exit 1
fi

# The pages that headers and helps of the program mention are installed.
pages="$work/prefix/share/doc/tenon"
mentioned="$({
  cat "$work"/prefix/include/tenon/*
  for verb in train test infer plan "plugins list" "plugins info" "plugins new" "plugins seal" "model show"; do
    # shellcheck disable=SC2086 # a verb may be two words
    "$work/prefix/bin/tenon" $verb --help
  done
} | grep -oE 'docs/[a-z0-9_-]+\.md' | sort -u)"
grep -qx docs/plan.md <<<"$mentioned"
for page in $mentioned examples/fashion_mnist/mlp.toml README.md; do
  if [[ ! -f "$pages/$page" ]]; then
    echo "not installed: share/doc/tenon/$page"
    exit 1
  fi
done
