# For test.sh, which sources it in the folder of the project: a folder for the test's files, and comparisons.
# $1 of the test is the folder that the plugin was built into. SPDX-License-Identifier: MIT
set -eu
export LC_ALL=C
PLUGINS=$(cd "${1:-build/lib/tenon/plugins}" && pwd)
export PLUGINS
project=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ ! -f job.toml ] || cp job.toml "$work"
for file in points.*; do [ ! -f "$file" ] || cp "$file" "$work"; done
cd "$work"

run() { sh "$project/run.sh" "$@"; }

fail() {
  echo "test failed: $*" >&2
  exit 1
}

# same WHAT TOLERANCE FILE: each line of the file has two numbers, expected and actual, that differ by at most the
# tolerance.
same() {
  awk -v what="$1" -v tolerance="$2" '
    NF != 2 { print what ", line " NR ": expected two numbers, got \"" $0 "\""; bad = 1; exit }
    { d = $1 - $2; if (!(d <= tolerance && -d <= tolerance)) {
        print what ", number " NR ": expected " $1 ", got " $2; bad = 1; exit } }
    END { if (NR == 0) print what ": no numbers"; exit bad || NR == 0 }' "$3" >&2 || fail "$1"
}

# The rules of the plugin interface; a reader needs cases with its attributes.
set --
[ ! -f "$project/cases.toml" ] || set -- --cases "$project/cases.toml"
"${TENON:-tenon}" plugins check "$PLUGINS"/*/my_plugin.so "$@" >check.out 2>&1 || {
  cat check.out >&2
  fail "tenon plugins check"
}

# costs: the cost of each pass, from the events of a training (--log-format json).
costs() { sed -n '/"event":"end_pass"/s/.*"cost":\([-0-9.e+]*\).*/\1/p'; }
