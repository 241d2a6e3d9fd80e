#!/usr/bin/env bash
# Installs Tenon, builds the pack of readers in extras/ with nothing but that installation, those of its readers whose
# libraries are there, runs its tests and makes its package: extras.sh <cmake> <build folder> <work folder> <sources>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" sources="$4"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
cp -r "$sources" "$work/source" # not a folder of the tree
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
"$cmake" -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_FLAGS="$warnings" -DCMAKE_CXX_FLAGS="$warnings" >"$work/configure.log" 2>&1 || {
  cat "$work/configure.log"
  exit 1
}
grep 'Readers:' "$work/configure.log"
"$cmake" --build "$work/build" >"$work/build.log" || {
  cat "$work/build.log"
  exit 1
}
"${cmake%/*}/ctest" --test-dir "$work/build" --output-on-failure
(cd "$work/build" && "${cmake%/*}/cpack" -D CPACK_DEBIAN_COMPRESSION_TYPE=none >"$work/cpack.log" 2>&1) || {
  cat "$work/cpack.log"
  exit 1
}
# Into files: grep -q would end dpkg-deb early.
dpkg-deb -c "$work/build"/tenon-extras_*.deb >"$work/files"
grep -q 'tenon/plugins/readers/extras_tfrecord.so' "$work/files"
dpkg-deb -f "$work/build"/tenon-extras_*.deb Depends >"$work/depends"
grep -q tenon-plugins "$work/depends"
