# Trains with the provider and without it, whose results must be the same: sh test.sh [FOLDER OF THE PLUGIN].
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")"
. ./testing.sh

run plan job.toml >plan.out
grep -q my_plugin plan.out || fail "the provider computes no product: $(cat plan.out)"

without() { "${TENON:-tenon}" "$@"; }
for who in run without; do
  $who train job.toml --check --save $who.safetensors --log-format json | costs >$who.costs
  $who infer job.toml --model $who.safetensors --output chance --format csv | sed 1d | tr , '\n' >$who.chances
done
paste -d ' ' without.costs run.costs >costs
same "the cost of each pass" 1e-4 costs
paste -d ' ' without.chances run.chances >chances
same "the answers of the trained network" 1e-3 chances
echo "the provider is right"
