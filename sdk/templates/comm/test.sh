# Checks the rules of communicators, and what the plugin states about itself: sh test.sh [FOLDER OF THE PLUGIN].
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")"
. ./testing.sh # runs tenon plugins check: worlds of up to three processes, lost, silent and missing ranks, strangers

grep -q '^comm example.my_plugin: .* 0 failed' check.out || fail "no communicator was checked: $(cat check.out)"
run plugins info example.my_plugin >info.out
grep -q 'traits: survives a lost rank' info.out || fail "a lost rank is to be an event: $(cat info.out)"
echo "the communicator is right"
