# Compares what the reader reads with its file, and a training that was interrupted within a pass with one that was not:
#   sh test.sh [FOLDER OF THE PLUGIN]. SPDX-License-Identifier: MIT
cd "$(dirname "$0")"
. ./testing.sh

run train job.toml --check --save whole.safetensors >train.out
run infer job.toml --model whole.safetensors --output feature_read --output label_read --format csv >infer.csv
awk '
  FNR == NR { if ($0 != "" && $0 !~ /^#/) line[++n] = $0; next }
  FNR == 1 { next }
  { split(line[FNR - 1], expected, " "); split($0, got, ","); for (i = 1; i <= 3; ++i) print expected[i], got[i + 1] }
  END { if (FNR != n + 1) print "expected " n " samples, got " FNR - 1 }' points.txt infer.csv >values
same "the samples" 1e-6 values

# New data has the classes or lacks them; readers in C and Rust need them.
if ls ./*.cpp >/dev/null 2>&1; then
  awk '/^[-0-9]/ { print $1, $2 }' points.txt >unlabelled.txt
  awk '/^[-0-9]/' points.txt >labelled.txt
  for data in unlabelled labelled; do
    run infer whole.safetensors --output score --data $data.txt >$data.out
  done
  cmp unlabelled.out labelled.out || fail "data without classes gives other scores"
fi

# Half of the samples each, by their numbers.
for shard in 0 1; do
  run infer job.toml --model whole.safetensors --output label_read --format csv --set reader.test.shards=2 \
    --set reader.test.shard=$shard | sed -n 's/^[0-9]*,//p'
done >shards
awk '
  FNR == NR { if ($0 != "" && $0 !~ /^#/) label[n++] = $3; next }
  { i = (FNR - 1) * 2; if (i >= n) i -= n - 1; print label[i], $1 }' points.txt shards >values
same "the labels of two shards" 0 values

# The same training on the reader csv, in the order of the file and shuffled: samples are read by number as well.
{
  echo x,y,label
  awk '/^[-0-9]/ { print $1 "," $2 "," $3 }' points.txt
} >points.csv
sed 's/^type = "example.my_plugin"/type = "csv"/; s/^file = .*/files = ["points.csv"]\
columns = ["feature = x, y: f32", "label = label: i32 < 2"]/' job.toml >csv.toml
for shuffle in false true; do
  for job in csv job; do
    run train $job.toml --set reader.train.shuffle=$shuffle --no-save --log-format json | costs >$job.costs
  done
  paste -d ' ' csv.costs job.costs >costs
  same "the cost of each pass, shuffle = $shuffle" 0 costs
done

# Exact resuming: from a checkpoint after 4 of the 5 minibatches of a pass, in the order of the file and shuffled.
for shuffle in false true; do
  run train job.toml --set reader.train.shuffle=$shuffle --save whole.safetensors >train.out
  run train job.toml --set reader.train.shuffle=$shuffle --passes 2 --no-save \
    --set checkpoint.folder=checkpoints.$shuffle --set checkpoint.every_batches=3 --set checkpoint.keep=100 >train.out
  run train job.toml --set reader.train.shuffle=$shuffle --set checkpoint.folder=checkpoints.$shuffle \
    --resume-from checkpoints.$shuffle/checkpoint-1-4.safetensors --save resumed.safetensors >train.out
  cmp whole.safetensors resumed.safetensors || fail "a resumed training differs, shuffle = $shuffle"
done

# refused TEXT: a file of this text is damaged, and the message names its third line.
refused() {
  printf '1 2 0\n3 4 1\n%s\n' "$1" >points.txt
  code=0
  run train job.toml --no-save >train.out 2>error.out || code=$?
  [ "$code" -eq 65 ] || fail "\"$1\": expected the exit code 65, got $code"
  grep -q 'points.txt, line 3' error.out || fail "\"$1\": the error does not name the line: $(cat error.out)"
}
refused '5 six 1'
refused '5 1'
refused '5 6 0.5'
refused '5 6 -1'
echo "the reader is right"
