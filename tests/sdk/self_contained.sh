#!/usr/bin/env bash
# Checks that applications need no header but what Tenon installs and the system has: installs Tenon and preprocesses
# each header of the public API with the folder of the installed headers alone:
#   self_contained.sh <cmake> <build folder> <work folder> <C compiler> <C++ compiler>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3" c="$4" cxx="$5"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
include="$(dirname "$(dirname "$(find "$work/prefix" -name tenon.h -path '*/include/tenon/*' -print -quit)")")"
system='/usr/include/[a-z0-9_-]+\.h$|.*/(c\+\+|x86_64-linux-gnu|gcc|clang|bits|linux|asm[^/]*)/'

# check <header> <language> <standard> <compiler>: looks at what the header includes, since a system may have headers
# installed that Tenon does not bring, such as DLPack's. That it compiles alone is checked by header.sh.
check() {
  local found foreign
  printf '#include <tenon/%s>\n' "$1" >"$work/application"
  found="$("$4" -x "$2" "-std=$3" -M "-I$include" "$work/application" | tr -s ' \\\n' '\n' | grep '/')"
  grep -q "$include/tenon/$1" <<<"$found" || {
    echo "the compiler does not list what $1 includes: $found"
    exit 1
  }
  foreign="$(grep -vE "^($include/tenon/|$work/application|$system)" <<<"$found" || true)"
  [[ -z "$foreign" ]] || {
    echo "$1 includes headers that are not installed with Tenon: $foreign"
    exit 1
  }
}

for path in "$include"/tenon/tenon*.h; do
  check "$(basename "$path")" c c99 "$c"
  check "$(basename "$path")" c++ c++17 "$cxx"
done
for path in "$include"/tenon/tenon*.hpp; do
  check "$(basename "$path")" c++ c++17 "$cxx"
done
