#!/usr/bin/env bash
# Installs Tenon, builds the installed template in another folder, and checks the plugin:
#   template.sh <cmake> <build folder> <work folder> <C++ compiler> <exports.sh> <nm> <readelf>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" compiler="$4" exports="$5" nm="$6" readelf="$7"
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

cp -r "$work/prefix/share/tenon/sdk/template" "$work/source"
"$cmake" -S "$work/source" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror"
"$cmake" --build "$work/build"
plugin="$work/build/lib/tenon/plugins/layers/swish.so"
bash "$exports" "$nm" plugin "$plugin"
if grep -rlE "$build/|$work/source" "$plugin"; then
  echo "the plugin names the folder that it was built in"
  exit 1
fi

# The installed program lists the plugin from its note once it is in the folder of plugins.
plugins="$(dirname "$(find "$work/prefix" -type d -path '*/tenon/plugins/layers' -print -quit)")"
cp "$plugin" "$plugins/layers/"
"$work/prefix/bin/tenon" plugins list >"$work/list"
grep -q swish "$work/list" || {
  echo "tenon plugins list does not show the new plugin:"
  cat "$work/list"
  exit 1
}
