# Trains on the device and on the device cpu, whose results must be the same: sh test.sh [FOLDER OF THE PLUGIN].
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")"
. ./testing.sh

for device in example.my_plugin cpu; do
  run train job.toml --set "device=\"$device\"" --check --save $device.safetensors --log-format json |
    costs >$device.costs
  run infer job.toml --set "device=\"$device\"" --model $device.safetensors --output chance --format csv |
    sed 1d | tr , '\n' >$device.chances
done
paste -d ' ' cpu.costs example.my_plugin.costs >costs
same "the cost of each pass" 1e-4 costs
paste -d ' ' cpu.chances example.my_plugin.chances >chances
same "the answers of the trained network" 1e-3 chances

# What the device does not offer is refused by name.
code=0
run train job.toml --set layer.hidden.drop_rate=0.5 --no-save >train.out 2>error.out || code=$?
[ "$code" -eq 78 ] || fail "a program that draws: expected the exit code 78, got $code: $(cat error.out)"
grep -q uniform error.out || fail "a program that draws: the error does not name the opcode: $(cat error.out)"
echo "the device is right"
