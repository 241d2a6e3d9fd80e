#!/usr/bin/env bash
# Builds plugins of the installed SDK for aarch64, without running a program of that machine, by CMake, and by the compiler
# and `tenon plugins seal --manifest-of`: cross.sh <cmake> <build folder> <work folder> <C compiler> <C++ compiler> <readelf>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" c="$4" cxx="$5" readelf="$6"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work/all/inner"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
tenon="$work/prefix/bin/tenon"
cat >"$work/aarch64.cmake" <<'TOOLS'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
TOOLS
"$tenon" plugins new maker.metric --kind metric --language c++ --folder "$work/all/metric" >/dev/null
"$tenon" plugins new maker.curve --kind layer --language c --folder "$work/all/inner/curve" >/dev/null
cat >"$work/all/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.25)
project(all LANGUAGES C CXX)
add_subdirectory(metric)
add_subdirectory(inner/curve)
PROJECT

# The compilers of the environment are those of the other machine, as in many cross builds.
configure() {
  CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ "$cmake" -S "$1" -B "$2" -G "$3" \
    -DCMAKE_TOOLCHAIN_FILE="$work/aarch64.cmake" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DTENON_NATIVE_OPTIONS="-DCMAKE_C_COMPILER=$c;-DCMAKE_CXX_COMPILER=$cxx" "${@:4}" >"$2.configure.log" 2>&1
}
built() {
  "$cmake" --build "$1" >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }
}
# foreign <file> <id>: the file is for aarch64, holds the manifest of this plugin, and hosts here refuse it by that name
foreign() {
  grep -q 'Machine: *AArch64' <<<"$("$readelf" -h "$1")"
  grep -q '^ *Tenon ' <<<"$("$readelf" -n "$1")"
  grep -aq "\"id\":\"$2\"" "$1"
  "$tenon" plugins list --plugins "$(dirname "$1")" >"$work/list"
  grep -q "$1: it is built for another machine: for aarch64, and this one is " "$work/list" || { cat "$work/list"; exit 1; }
}
for generator in Ninja 'Unix Makefiles'; do
  folder="$work/${generator%% *}"
  configure "$work/all" "$folder" "$generator" || { cat "$folder.configure.log"; exit 1; }
  built "$folder"
  foreign "$folder/lib/tenon/plugins/layers/metric.so" maker.metric
  foreign "$folder/lib/tenon/plugins/layers/curve.so" maker.curve
done

# A change of the sources changes the manifest; without one nothing is built again.
folder="$work/Ninja"
built "$folder"
if grep -q '\.so$' "$folder.log"; then
  echo "a build without changes links again:"
  cat "$folder.log"
  exit 1
fi
sed -i 's/maker\.metric/maker.changed/' "$work/all/metric/metric.cpp"
built "$folder"
foreign "$folder/lib/tenon/plugins/layers/metric.so" maker.changed

# A project that cannot be configured for this machine.
if configure "$work/all" "$work/wrong" Ninja -DTENON_NATIVE_OPTIONS=-DCMAKE_CXX_COMPILER=/none; then exit 1; fi
grep -q 'TENON_NATIVE_OPTIONS has arguments' "$work/wrong.configure.log"
grep -q CMAKE_CROSSCOMPILING_EMULATOR "$work/wrong.configure.log"
"$tenon" plugins new maker.rusty --kind layer --language rust --folder "$work/rusty" >/dev/null
if configure "$work/rusty" "$work/rust" Ninja; then exit 1; fi
grep -q 'a plugin in Rust is not built for another machine' <<<"$(tr -s '\n ' ' ' <"$work/rust.configure.log")"

# By the compilers alone.
mkdir "$work/here" "$work/there"
options=(-std=c99 -O1 -shared -fPIC -fvisibility=hidden "-I$work/prefix/include" "$work/all/inner/curve/curve.c" -lm)
"$c" "${options[@]}" -o "$work/here/curve.so"
aarch64-linux-gnu-gcc "${options[@]}" -o "$work/there/curve.so"
"$tenon" plugins seal "$work/here/curve.so"
"$tenon" plugins seal "$work/there/curve.so" --manifest-of "$work/here/curve.so"
foreign "$work/there/curve.so" maker.curve
