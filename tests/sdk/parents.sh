#!/usr/bin/env bash
# Checks that sources of the product do not include by "../", which include paths cannot prevent.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$1"

if found="$(grep -rnE '#[[:space:]]*include[[:space:]]*["<]([^">]*/)?\.\./' base core host plugins sdk)"; then
  printf 'included by way of a parent folder:\n%s\n' "$found"
  exit 1
fi
# The search must find a forbidden include.
grep -qE '#[[:space:]]*include[[:space:]]*["<]([^">]*/)?\.\./' <<<'#include "../core/error.h"'
