#!/usr/bin/env bash
# Include paths cannot stop "../": no source of the product may use it. SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$1"

if found="$(grep -rnE '#[[:space:]]*include[[:space:]]*["<]([^">]*/)?\.\./' core host plugins sdk)"; then
  printf 'included by way of a parent folder:\n%s\n' "$found"
  exit 1
fi
# The search itself must be able to find one.
grep -qE '#[[:space:]]*include[[:space:]]*["<]([^">]*/)?\.\./' <<<'#include "../core/error.h"'
