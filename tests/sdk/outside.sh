#!/usr/bin/env bash
# Installs Tenon, builds the plugins of the folder outside with nothing but the installed SDK, and trains with them:
#   outside.sh <cmake> <build folder> <work folder> <C compiler> <C++ compiler> <nm> <readelf> <rustc>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" c="$4" cxx="$5" nm="$6" readelf="$7" rustc="$8"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
cp -r "$here/outside" "$work/source"
tenon="$work/prefix/bin/tenon"
plugins="$(dirname "$(find "$work/prefix" -type d -path '*/tenon/plugins/layers' -print -quit)")/layers"

# Two plugins and the program by the CMake packages.
"$cmake" -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER="$c" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$warnings" -DCMAKE_CXX_FLAGS="$warnings" \
  >"$work/configure.log"
"$cmake" --build "$work/build"
cp "$work/build/lib/tenon/plugins/layers/"*.so "$plugins/"

# One by the compiler alone, sealed.
# shellcheck disable=SC2086
"$c" -std=c99 $warnings -O2 -shared -fPIC -fvisibility=hidden "-I$work/prefix/include" "$work/source/lstm.c" \
  -o "$plugins/lstm.so" -lm
"$tenon" plugins seal "$plugins/lstm.so"

# One by the Rust of Debian 12, without crates. Its panics need the unwinder of libgcc_s.
"$rustc" --version
rust=("$rustc" --edition 2021 -O -C panic=unwind -D warnings --remap-path-prefix "$work/source/=")
sdk="$work/prefix/share/tenon/sdk/rust"
"${rust[@]}" --crate-type rlib --crate-name tenon_plugin "$sdk/tenon_plugin.rs" -o "$work/libtenon_plugin.rlib"
"${rust[@]}" --crate-type cdylib -C strip=symbols --extern "tenon_plugin=$work/libtenon_plugin.rlib" \
  "$work/source/rust/swish.rs" -o "$plugins/swish.so"
"$readelf" -d "$plugins/swish.so" | grep -q 'NEEDED.*libgcc_s' || {
  echo "the plugin in Rust does not need libgcc_s"
  exit 1
}
"$tenon" plugins seal "$plugins/swish.so"

# A manifest of more than 4 KiB: tenon_add_plugin gives it a larger note.
"$tenon" plugins new outside.large --kind layer --language rust --folder "$work/large" >/dev/null
source="$(echo "$work/large/"*.rs)"
sed -i "s/\"out = in \* sigmoid(beta \* in)\", 1/\"$(printf 'word %.0s' {1..1500})\", 1/" "$source"
grep -q 'word word' "$source"
"$cmake" -S "$work/large" -B "$work/large/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$c" \
  -DTENON_RUSTC="$rustc" >"$work/configure.log"
"$cmake" --build "$work/large/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$tenon" plugins list --plugins "$work/large/build/lib/tenon/plugins" >"$work/list"
grep -q outside.large "$work/list"
"${rust[@]}" --crate-type cdylib --extern "tenon_plugin=$work/libtenon_plugin.rlib" "$source" -o "$work/large/small.so"
if "$tenon" plugins seal "$work/large/small.so" 2>"$work/seal.err"; then exit 1; fi
grep -q 'TENON_NOTE_BYTES' "$work/seal.err"

# The structs and numbers of the binding are those of the C headers.
"${rust[@]}" --extern "tenon_plugin=$work/libtenon_plugin.rlib" "$work/source/rust/layout.rs" -o "$work/layout"
"$work/layout" >"$work/layout.c"
"$c" -std=c11 -fsyntax-only "-I$work/prefix/include" "$work/layout.c"
for sign in '(tn_plugin) == ' '(tn_reader_type, seek) == ' 'TN_OP_SIGN == '; do
  grep -qF -- "$sign" "$work/layout.c" || {
    echo "the layouts of the binding in Rust lack \"$sign\""
    exit 1
  }
done

for plugin in batch_norm max_pool lstm swish; do
  bash "$here/exports.sh" "$nm" plugin "$plugins/$plugin.so"
done
"$work/build/check"

# expect <file> <pattern>: fails if no line of the file matches the pattern.
expect() {
  grep -qE -- "$2" "$1" || {
    printf 'expected "%s" in:\n' "$2"
    cat "$1"
    exit 1
  }
}

# The plugin in Rust in a job.
cp "$work/source/rust/swish.toml" "$work/"
awk 'BEGIN { srand(1); print "x,y,label"
             for (i = 0; i < 2000; ++i) { x = 2 * rand() - 1; y = 2 * rand() - 1; print x "," y "," (x * y > 0) } }' \
  >"$work/points.csv"
"$tenon" plan "$work/swish.toml" >"$work/plan.out"
expect "$work/plan.out" outside_swish
# Its option in a plugin set turns the kernel off.
guarded="$(mktemp -d)" # that others may not write, whatever the umask
printf 'mode = "dev"\n[[plugin]]\nid = "org.example.outside.swish"\noptions = { kernel = false }\n' >"$guarded/off.toml"
chmod go-w "$guarded/off.toml"
"$tenon" plan "$work/swish.toml" --plugin-set "$guarded/off.toml" >"$work/off.out"
rm -r "$guarded"
if grep -q outside_swish "$work/off.out"; then
  echo "an option did not turn the kernel off"
  exit 1
fi
"$tenon" train "$work/swish.toml" >"$work/train.out"
tail -n 1 "$work/train.out" >"$work/last.out"
expect "$work/last.out" 'accuracy (0\.9|1)'
# panics <number of the attribute> <who fails>: a panic there is an error of one line, which names the place.
panics() {
  if "$tenon" train "$work/swish.toml" --set "layer.bent.panic=$1" >"$work/panic.out" 2>&1; then
    echo "a panic is not an error"
    exit 1
  fi
  expect "$work/panic.out" "^tenon: .*layer \"bent\" \\(outside.swish$2\\): panic at rust/swish.rs:[0-9]+: the attribute \"panic\" asks for it"
  if [[ "$(wc -l <"$work/panic.out")" -ne 1 ]]; then
    echo "a panic prints more than its error:"
    cat "$work/panic.out"
    exit 1
  fi
}
panics 1 ', native kernel "outside_swish"'
panics 2 ''
