#!/usr/bin/env bash
# Installs Tenon, builds the installed templates in other folders, and checks the plugins:
#   template.sh <cmake> <build folder> <work folder> <C compiler> <C++ compiler> <exports.sh> <nm> <readelf>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" c_compiler="$4" compiler="$5" exports="$6" nm="$7" readelf="$8"
rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
for file in bin/tenon lib/libtenon.so lib/libtenon.so.0 include/tenon/tenon.h include/tenon/tenon.hpp include/tenon/plugin.hpp; do
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
  for verb in train test infer plan "plugins list" "plugins info" "plugins seal" "model show"; do
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

# builds <template> <language> <name>: builds an installed template outside, and checks the plugin.
builds() {
  local source="$work/$1" plugin="$work/$1-build/lib/tenon/plugins/layers/$3.so"
  cp -r "$work/prefix/share/tenon/sdk/$1" "$source"
  "$cmake" -S "$source" -B "$work/$1-build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_$2_COMPILER="$4" -DCMAKE_$2_FLAGS="-Wall -Wextra -Wpedantic -Werror"
  "$cmake" --build "$work/$1-build"
  bash "$exports" "$nm" plugin "$plugin"
  if grep -rlE "$build/|$source" "$plugin"; then
    echo "the plugin names the folder that it was built in"
    exit 1
  fi
}
builds template CXX swish "$compiler"
builds template_c C scale "$c_compiler"

# The installed program lists the plugins from their notes once they are in the folder of plugins.
plugins="$(dirname "$(find "$work/prefix" -type d -path '*/tenon/plugins/layers' -print -quit)")"
cp "$work"/template*-build/lib/tenon/plugins/layers/*.so "$plugins/layers/"
"$work/prefix/bin/tenon" plugins list >"$work/list"
for id in org.example.swish org.example.scale; do
  grep -q "$id" "$work/list" || {
    echo "tenon plugins list does not show the new plugin $id:"
    cat "$work/list"
    exit 1
  }
done
