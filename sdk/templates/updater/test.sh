# Compares updates with the formula: sh test.sh [FOLDER OF THE PLUGIN]. SPDX-License-Identifier: MIT
cd "$(dirname "$0")"
. ./testing.sh

# A pass is one minibatch, so one update. The output at x = 1, the first point, is the parameter.
for passes in 1 2 7 19 30; do
  run train job.toml --check --passes $passes --save model.safetensors >train.out
  run infer job.toml --model model.safetensors --output line --format csv | sed -n 's/^0,//p'
done >parameter

# The formula in plain arithmetic. The multipliers are those of the job.
awk -F, -v rate=0.06 -v momentum=0.8 -v decay=0.1 -v rate_multiplier=0.5 -v decay_multiplier=2 '
  function sign(v) { return v > 0 ? 1 : v < 0 ? -1 : 0 }
  FNR == NR { if (NR > 1) { x[++n] = $1; y[n] = $2 } next }
  FNR == 1 {
    p = 0.9
    for (step = 1; step <= 30; ++step) {
      g = 0
      for (i = 1; i <= n; ++i) g += 2 * (p * x[i] - y[i]) * x[i] / n
      m = momentum * m + (1 - momentum) * g
      p -= rate * rate_multiplier * (sign(m) + decay * decay_multiplier * p)
      after[step] = p
    }
  }
  { print after[FNR == 1 ? 1 : FNR == 2 ? 2 : FNR == 3 ? 7 : FNR == 4 ? 19 : 30], $1 }' points.csv parameter >values
same "the parameter after 1, 2, 7, 19, 30 updates" 1e-5 values
echo "the updater is right"
