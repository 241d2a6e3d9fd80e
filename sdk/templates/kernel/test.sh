# Compares outputs and gradient of the kernels with the formula: sh test.sh [FOLDER OF THE PLUGIN].
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")"
. ./testing.sh

# One update with all samples, in check mode: wrong writes of the kernels are errors.
run train job.toml --check --save model.safetensors >train.out
run infer job.toml --model model.safetensors --output factor --output smoothed --format csv >infer.csv

# The formula in plain arithmetic: from the points, the factors after the update (the first line), and the outputs.
awk -F, -v decay=0.6 -v rate=0.1 '
  function smoothed(i, j, factor, k, sum) {
    for (k = 1; k <= j; ++k) sum = decay * sum + (1 - decay) * x[i, k] * factor[k]
    return sum
  }
  function cost(factor, i, j, sum) {
    for (i = 1; i <= n; ++i) for (j = 1; j <= 4; ++j) sum += (smoothed(i, j, factor) - y[i, j]) ^ 2
    return sum / n
  }
  FNR == 1 { next }
  FNR == NR { n = NR - 1; for (j = 1; j <= 4; ++j) { x[n, j] = $j; y[n, j] = $(j + 4) } next }
  FNR == 2 {
    for (k = 1; k <= 4; ++k) {
      for (j = 1; j <= 4; ++j) up[j] = down[j] = 0.7
      up[k] += 1e-4
      down[k] -= 1e-4
      print 0.7 - rate * (cost(up) - cost(down)) / 2e-4, $(k + 1)
    }
  }
  {
    for (j = 1; j <= 4; ++j) factor[j] = $(j + 1)
    for (j = 1; j <= 4; ++j) print smoothed(FNR - 1, j, factor), $(j + 5)
  }' points.csv infer.csv >values
same "the factors after an update, then the outputs" 1e-5 values
echo "the kernels are right"
