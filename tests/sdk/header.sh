#!/usr/bin/env bash
# Compiles one header alone, in each of its languages, without warnings, by the build's compiler and by clang if found:
#   header.sh <compiler> <clang or CLANG-NOTFOUND> <header> <language>,... <option>...
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

header="$3"
IFS=',' read -ra languages <<<"$4"
for compiler in "$1" "$2"; do
  [[ "$compiler" != *-NOTFOUND && -n "$compiler" ]] || continue
  for language in "${languages[@]}"; do
    kind=c
    [[ "$language" != c++* ]] || kind=c++
    # Included twice to check the include guard.
    printf '#include <tenon/%s>\n#include <tenon/%s>\n' "$header" "$header" |
      "$compiler" -x "$kind" "-std=$language" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only \
        "${@:5}" - || {
      echo "tenon/$header does not compile alone as $language with $compiler"
      exit 1
    }
  done
done
