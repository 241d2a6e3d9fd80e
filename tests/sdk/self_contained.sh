#!/usr/bin/env bash
# Checks that the public API includes only headers of the system and of Tenon: self_contained.sh <compiler> <checkout>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

for header in tenon/tenon.h tenon/tenon.hpp; do
  found="$(printf '#include <%s>\n' "$header" |
    "$1" -x c++ -std=c++17 -M "-I$2/sdk/include" "-I$2/host/include" - | tr -s ' \\\n' '\n' | grep '/')"
  grep -q "$2/host/include/$header" <<<"$found" || {
    echo "the compiler does not list what $header includes: $found"
    exit 1
  }
  foreign="$(grep -vE "^($2/(sdk|host)/include/tenon/|.*/(c\+\+|x86_64-linux-gnu|gcc|clang|bits|linux|asm[^/]*)/|/usr/include/[a-z0-9_-]+\.h$)" \
    <<<"$found" || true)"
  [[ -z "$foreign" ]] || {
    echo "$header includes headers that are not installed with Tenon: $foreign"
    exit 1
  }
done
