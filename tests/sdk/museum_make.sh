#!/usr/bin/env bash
# The script that makes the exhibits of the museum works, and they are small: museum_make.sh <museum> <folder>
# <exports.sh> <nm>. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

museum="$1" folder="$2" exports="$3" nm="$4"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$folder"
"$museum/make" "$folder"
count=0
for file in "$folder"/*.so "$folder"/kinds/*.so; do
  bash "$exports" "$nm" plugin "$file"
  if [[ "$(stat -c %s "$file")" -gt $((64 * 1024)) ]]; then
    echo "$file has more than 64 KiB"
    exit 1
  fi
  if "$nm" "$file" 2>/dev/null | grep -q .; then
    echo "$file is not stripped"
    exit 1
  fi
  count=$((count + 1))
done
if [[ "$count" -lt 9 ]]; then
  echo "expected a plugin in C, one in C++ and those of each kind, got $count"
  exit 1
fi
