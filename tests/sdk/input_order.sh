#!/usr/bin/env bash
# What a formula means does not depend on the compiler: input_order.sh <SDK headers> <DLPack> <work folder> <compiler>...
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

sdk="$1" dlpack="$2" work="$3"
mkdir -p "$work"
first=""
for compiler in "${@:4}"; do
  for level in 0 2; do
    "$compiler" -std=c++17 "-O$level" -Wall -Wextra -Werror "-I$sdk" -idirafter "$dlpack" \
      "$(dirname "$0")/input_order.cpp" -o "$work/input_order"
    "$work/input_order" >"$work/printed"
    [ -n "$first" ] || first="$(cat "$work/printed")"
    diff <(printf '%s\n' "$first") "$work/printed" || {
      echo "$compiler -O$level differs from $4"
      exit 1
    }
  done
done
if sed '/^--$/,$d' <<<"$first" | grep -v ': refused$'; then
  echo "these are recorded, in an order that C++ leaves open"
  exit 1
fi
if sed '1,/^--$/d' <<<"$first" | grep ': refused$'; then
  echo "these are refused, though C++ defines their order"
  exit 1
fi
