#!/usr/bin/env bash
# Checks the exported and undefined symbols of a shared object: exports.sh <nm> plugin|library|archive <file>
#   plugin:  exactly the symbol tenon_plugin, and no undefined symbol of Tenon
#   library: only tn_*, among them tn_version
#   archive: no function of nlohmann's JSON outside of Tenon's own namespace: a program may use the library, too
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

nm="$1" kind="$2" file="$3"
if [[ "$kind" == archive ]]; then
  # Into a file: grep -q would end nm early.
  symbols="$("$nm" --defined-only "$file" 2>/dev/null | awk '{ print $3 }')"
  grep -q '8nlohmann8of_tenon' <<<"$symbols" || { echo "$file has no JSON of Tenon's; this test is out of date"; exit 1; }
  if foreign="$(grep '8nlohmann' <<<"$symbols" | grep -v '8nlohmann8of_tenon')"; then
    printf '%s defines functions that are those of others in a program with nlohmann/json.hpp:\n%s\n' "$file" "$foreign"
    exit 1
  fi
  exit 0
fi
# nm prints value, letter, name; a version may follow the name. The names of versions have the letter A.
defined="$("$nm" -D --defined-only "$file" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')"
if [[ "$kind" == plugin ]]; then
  if [[ "$defined" != tenon_plugin ]]; then
    printf '%s must export tenon_plugin alone; it exports:\n%s\n' "$file" "$defined"
    exit 1
  fi
  if ours="$("$nm" -D --undefined-only "$file" | grep -E ' _?_?(tn_|tenon|_ZN?K?5tenon|_ZN?K?2tn)')"; then
    printf '%s needs symbols of the host:\n%s\n' "$file" "$ours"
    exit 1
  fi
else
  if other="$(grep -v '^tn_' <<<"$defined")"; then
    printf '%s must export tn_* alone; it exports also:\n%s\n' "$file" "$other"
    exit 1
  fi
  [[ "$file" == *arrow* ]] || grep -qx tn_version <<<"$defined"
fi
