#!/usr/bin/env bash
# Makes the root of a container from the Debian packages that the test "packages" made, and trains in it with a locked
# plugin set:
#   container.sh <packaging/container-root> <folder of the packages> <work folder>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
umask 022 # sets, and folders around them, that others may write are refused

make_root="$1" packages="$2" work="$3"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work"
skip() {
  printf 'container: Skipped\n%s\n' "$1" # as scripts/test-report reads it
  exit 77
}
unshare --user --map-root-user --mount --pid --fork true 2>"$work/unshare.log" ||
  skip "no namespaces for a container here: $(head -1 "$work/unshare.log")"
command -v dpkg-query >/dev/null || skip "no dpkg here"

"$make_root" "$work/root" "$packages"/libtenon0_*.deb "$packages"/tenon-plugins_*.deb "$packages"/tenon_*.deb
if "$make_root" "$work/root" "$packages"/tenon_*.deb 2>"$work/again"; then
  echo "container-root overwrote a folder"
  exit 1
fi
cp "$(dirname "$make_root")/../sdk/templates/kernel/points.csv" "$work/root/work/points.csv"
cat >"$work/root/work/job.toml" <<'END'
layer = [{ name = "score", type = "fc", inputs = ["x"], size = 4 },
         { name = "cost", type = "square_error", inputs = ["score", "y"] }]
updater = { type = "sgd", learning_rate = 0.01 }
passes = 1
[reader.train]
type = "csv"
files = ["points.csv"]
columns = ["x = x1..x4: f32", "y = y1..y4: f32"]
batch = 8
END
# There is no shell inside.
within() { unshare --user --map-root-user --mount --pid --fork chroot "$work/root" /usr/bin/tenon "$@"; }
within version
within plugins lock /work/job.toml -o /work/set.toml
within plugins verify /work/set.toml
within plan /work/job.toml --plugin-set /work/set.toml >"$work/plan"
grep -q '/usr/lib/tenon/plugins/layers/fc.so' "$work/plan"
within train /work/job.toml --no-save --plugin-set /work/set.toml
