#!/usr/bin/env bash
# Compiles headers without warnings, in one source for each language and each compiler that is found:
#   header.sh <compilers> <languages> <header>,... <option>...
# compilers: paths, of which one may be CLANG-NOTFOUND; languages: c99 or c++17, for example. Both are separated by
# commas. A header given alone has to bring what it uses.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

IFS=',' read -ra compilers <<<"$1"
IFS=',' read -ra languages <<<"$2"
IFS=',' read -ra headers <<<"$3"
# Twice, to check the include guards.
text="$(printf '#include <tenon/%s>\n' "${headers[@]}" "${headers[@]}")"
for compiler in "${compilers[@]}"; do
  [[ "$compiler" != *-NOTFOUND ]] || continue
  for language in "${languages[@]}"; do
    kind=c
    [[ "$language" != c++* ]] || kind=c++
    "$compiler" -x "$kind" "-std=$language" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only \
      "${@:4}" - <<<"$text" || {
      echo "these headers do not compile as $language with $compiler: ${headers[*]}"
      exit 1
    }
  done
done
