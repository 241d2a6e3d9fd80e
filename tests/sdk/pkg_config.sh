#!/usr/bin/env bash
# Builds an application and plugins by the pkg-config files of an installation that was moved:
#   pkg_config.sh <cmake> <build folder> <work folder> <C compiler> <C++ compiler> <source of the application>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" c="$4" cxx="$5" application="$6"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/moved"
PKG_CONFIG_PATH="$(dirname "$(find "$work/moved" -name tenon.pc)")"
export PKG_CONFIG_PATH

version="$(pkg-config --modversion tenon)"
program="$(pkg-config --variable=program tenon-sdk)"
[[ "$("$program" version)" == "tenon $version" ]] || {
  echo "tenon.pc states the version $version, the program says: $("$program" version)"
  exit 1
}
for variable in plugin_map includedir plugindir rust; do
  [[ -e "$(pkg-config "--variable=$variable" tenon-sdk)" ]] || {
    echo "tenon-sdk.pc: $variable is $(pkg-config "--variable=$variable" tenon-sdk), which does not exist"
    exit 1
  }
done

# shellcheck disable=SC2046 # the output of pkg-config is several words
"$c" "$application" $(pkg-config --cflags --libs tenon) "-Wl,-rpath,$(pkg-config --variable=libdir tenon)" -lm \
  -o "$work/application"
"$work/application" "$work/model.safetensors" >"$work/application.out"

# shellcheck disable=SC2046
"$c" -std=c99 "$(dirname "${BASH_SOURCE[0]}")/../bindings/arrow/arrow_c_test.c" $(pkg-config --cflags --libs tenon-arrow) \
  "-Wl,-rpath,$(pkg-config --variable=libdir tenon-arrow)" -o "$work/arrow"
"$work/arrow" "$(pkg-config --variable=plugindir tenon)"

# A plugin in C and one in C++, each by one call of the compiler.
templates="$(pkg-config --variable=sdkdir tenon-sdk)/templates"
mkdir "$work/c" "$work/cxx"
# shellcheck disable=SC2046
"$c" -std=c99 "$templates/layer/c/my_plugin.c" $(pkg-config --cflags --libs tenon-sdk) -o "$work/c/layer.so"
# shellcheck disable=SC2046
"$cxx" -std=c++17 -O0 "$templates/metric/cpp/my_plugin.cpp" $(pkg-config --cflags --libs tenon-sdk) \
  $(pkg-config --variable=cxxflags tenon-sdk) -o "$work/cxx/metric.so"
for plugin in c/layer cxx/metric; do
  "$program" plugins seal "$work/$plugin.so" >"$work/seal.out"
  "$program" plugins list --plugins "$work/${plugin%/*}" >"$work/list"
  grep -q '^example.my_plugin .*layers example.my_plugin' "$work/list" || {
    echo "$plugin.so is not listed:"
    cat "$work/list"
    exit 1
  }
done
bash "$(dirname "${BASH_SOURCE[0]}")/glibc.sh" nm "$(pkg-config --variable=libdir tenon)/libtenon.so" "$work/c/layer.so" \
  "$work/cxx/metric.so"
