# Compares the metric with its definition: sh test.sh [FOLDER OF THE PLUGIN]. SPDX-License-Identifier: MIT
cd "$(dirname "$0")"
. ./testing.sh

run train job.toml --check --save model.safetensors >train.out
run infer job.toml --model model.safetensors --output line --format csv >infer.csv

# The sums of minibatches of any size make the same value.
for batch in 1 5 32; do
  run test job.toml --model model.safetensors --check --set reader.test.batch=$batch --log-format json |
    sed -n 's/.*"my_plugin":\([-0-9.e+]*\).*/\1/p'
done >measured

# The definition in plain arithmetic.
awk -F, '
  FNR == 1 { ++file }
  file == 1 && FNR > 1 { y[FNR] = $2; sum += $2; ++n }
  file == 2 && FNR > 1 { error += ($2 - y[FNR]) ^ 2; spread += (y[FNR] - sum / n) ^ 2 }
  file == 3 { print error / spread, $1 }
  END { if (FNR != 3) print "expected three values" }' points.csv infer.csv measured >values
same "the metric with minibatches of 1, 5, 32 samples" 1e-5 values
echo "the metric is right"
