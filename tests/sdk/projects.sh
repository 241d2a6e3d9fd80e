#!/usr/bin/env bash
# Makes the projects of `tenon plugins new` from an installed Tenon, builds each with make and all with CMake, runs their
# tests, and checks that the tests notice a wrong formula:
#   projects.sh <cmake> <build folder> <work folder> <C compiler> <C++ compiler> <nm> <rustc> [launcher]
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" c="$4" cxx="$5" nm="$6" rustc="$7" launcher="${8:-}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work/all"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
tenon="$work/prefix/bin/tenon"
kinds=(layer kernel updater reader metric device provider comm)

# One project of each kind and language, in one CMake project.
projects=()
for kind in "${kinds[@]}"; do
  for language in c c++ rust; do
    [[ "$kind $language" != "device rust" && "$kind $language" != "provider rust" ]] || continue
    [[ "$kind" != comm || "$language" == c++ ]] || continue
    name="${kind}_${language/c++/cpp}"
    (cd "$work/all" && "$tenon" plugins new "maker.$name" --kind "$kind" --language "$language" >/dev/null)
    projects+=("$name")
  done
done
if grep -rlE 'my_plugin|\bexample\.' "$work/all"; then
  echo "these files have names of the templates"
  exit 1
fi
{
  echo 'cmake_minimum_required(VERSION 3.25)'
  echo 'project(all LANGUAGES C CXX)'
  printf 'add_subdirectory(%s)\n' "${projects[@]}"
  echo 'enable_testing()'
} >"$work/all/CMakeLists.txt"

# With make and the compilers alone, two at a time. The tests need no other program than the installed one.
make_project() {
  local log="$work/$1.log"
  PATH="$work/prefix/bin:$PATH" make -C "$work/all/$1" check CC="$c" CXX="$cxx" RUSTC="$rustc -D warnings" \
    RUSTFLAGS="-C opt-level=0" CFLAGS="-O1 $warnings" CXXFLAGS="-O0 $warnings" >"$log" 2>&1 || {
    cat "$log"
    return 1
  }
}
export -f make_project
export work c cxx rustc warnings
printf '%s\n' "${projects[@]}" | xargs -P 2 -I{} bash -c 'make_project {}' || exit 1

# With CMake. One test for each language; what they test does not depend on the build.
"$cmake" -S "$work/all" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DTENON_RUSTC="$rustc" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_C_COMPILER="$c" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" -DCMAKE_C_FLAGS="$warnings" -DCMAKE_CXX_FLAGS="$warnings" \
  -DCMAKE_C_FLAGS_DEBUG="" -DCMAKE_CXX_FLAGS_DEBUG="" \
  >"$work/configure.log"
"$cmake" --build "$work/build" >"$work/build.log" || {
  cat "$work/build.log"
  exit 1
}
ctest="${cmake%/*}/ctest"
"$ctest" --test-dir "$work/build" -R '^(layer_c|metric_cpp|kernel_rust)$' --output-on-failure --no-tests=error >"$work/test.log" || {
  cat "$work/test.log"
  exit 1
}
"$tenon" plugins list --plugins "$work/build/lib/tenon/plugins" >"$work/list"
library="$(find "$work/prefix" -name libtenon.so -print -quit)"
for name in "${projects[@]}"; do
  plugin="$(find "$work/build/lib/tenon/plugins" -name "$name.so")"
  bash "$here/exports.sh" "$nm" plugin "$plugin"
  bash "$here/glibc.sh" "$nm" "$library" "$plugin" "$(find "$work/all/$name/build/lib/tenon/plugins" -name "$name.so")"
  grep -q "^maker.$name " "$work/list" || {
    echo "tenon plugins list does not show maker.$name:"
    cat "$work/list"
    exit 1
  }
  # With the type Debug rustc writes debug information, which names folders.
  if [[ "$name" != *_rust ]] && grep -qE "$build/|$work/all" "$plugin"; then
    echo "the plugin $name names the folder that it was built in"
    exit 1
  fi
done

# Memory for data of more than the reserve of the binding for Rust: refused, it must not end the process.
awk 'BEGIN { for (i = 0; i < 60000; ++i) print i % 7, i % 5, i % 3 }' >"$work/many.txt"
for language in c cpp rust; do
  printf '[[case]]\ntype = "maker.reader_%s"\nattributes = { file = "many.txt" }\n' "$language" >"$work/many.toml"
  "$tenon" plugins check "$(find "$work/build/lib/tenon/plugins" -name "reader_$language.so")" --seconds 120 \
    --cases "$work/many.toml" --only 'own memory' >"$work/many.log" || {
    cat "$work/many.log"
    exit 1
  }
done

# The readers in an application whose locale has a decimal comma.
mkdir "$work/locale"
localedef -i de_DE -f UTF-8 "$work/locale/de_DE.UTF-8" # from the package locales
"$cxx" -std=c++17 "-I$work/prefix/include" "$here/decimal_comma.cpp" "$library" "-Wl,-rpath,${library%/*}" \
  -o "$work/decimal_comma"
echo '0.5 2 1' >"$work/comma.txt"
for language in c cpp rust; do
  LOCPATH="$work/locale" "$work/decimal_comma" de_DE.UTF-8 "$work/build/lib/tenon/plugins" \
    "maker.reader_$language" file "$work/comma.txt" 0 0,5
done

# noticed <project> <sed script>: the project's own test fails once its source is changed.
noticed() {
  local source="$work/all/$1/$1.c"
  cp "$source" "$work/before.c"
  sed -i "$2" "$source"
  if cmp -s "$source" "$work/before.c"; then
    echo "\"$2\" changes nothing in $1.c"
    exit 1
  fi
  if make_project "$1" >"$work/wrong.log" || ! grep -q sealed "$work/wrong.log"; then
    echo "the test of $1 does not notice \"$2\":"
    cat "$work/wrong.log"
    exit 1
  fi
}
# plugins check is part of each test: it finds what breaks the rules in another way than by a wrong formula.
noticed kernel_c 's/made->backward = direction == TN_BACKWARD/made->backward = 0/'
noticed layer_c 's/-tn_float(given/tn_float(given/'
noticed kernel_c 's/sum = from\[j\] + keep \* sum/sum = from[j]/'
noticed updater_c 's/0, 0, keep}/0, 0, 0.5}/'
noticed metric_c 's|/ state\[VALUES\] : 0|/ 2 : 0|'
noticed reader_c 's/it->position = to;/it->position = 0;/'
