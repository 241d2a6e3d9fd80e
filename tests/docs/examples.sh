#!/usr/bin/env bash
# Builds the applications in examples/ with an installed Tenon, as an embedder would, and runs them on small data:
#   examples.sh <cmake> <source folder> <build folder> <work folder> <C compiler> <C++ compiler> <python> <rustc>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" source="$2" build="$3" work="$4" c="$5" cxx="$6" python="$7" rustc="$8"
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
"$python" -B "$source/tests/docs/data.py" "$work/data"

for example in embed_c embed_cpp; do
  "$cmake" -S "$source/examples/$example" -B "$work/$example" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_C_COMPILER="$c" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$warnings" -DCMAKE_CXX_FLAGS="$warnings" \
    --no-warn-unused-cli >"$work/$example.log"
  "$cmake" --build "$work/$example"
done

# expect <file> <pattern>: fails if no line of the file matches the pattern.
expect() {
  grep -qE -- "$2" "$1" || {
    printf 'expected "%s" in:\n' "$2"
    cat "$1"
    exit 1
  }
}

"$work/embed_c/embed_c" "$work/c.safetensors" >"$work/c.out"
expect "$work/c.out" '^step 1000  cost 0\.[01]'
expect "$work/c.out" '^6[0-4] of 64 new points were told right'
"$work/embed_cpp/embed_cpp" "$work/data" "$work/cpp.safetensors" 5 >"$work/cpp.out"
expect "$work/cpp.out" '^pass 5  cost 0\.'
expect "$work/cpp.out" '^test  cost .* accuracy (1\.0000|0\.9[0-9]*)  \(200 samples\)'
expect "$work/cpp.out" '^image 4 '

# The installed program reads the model that embed_cpp wrote.
"$work/prefix/bin/tenon" model show "$work/cpp.safetensors" >"$work/show.out"
expect "$work/show.out" 'hidden.weight'

# An application in Rust that knows the installed library alone. A wrong call is an error there, too.
library="$(dirname "$(find "$work/prefix" -name libtenon.so -print -quit)")"
"$rustc" --edition 2021 -O -D warnings -L "native=$library" -C "link-arg=-Wl,-rpath,$library" \
  "$source/examples/embed_rust/main.rs" -o "$work/embed_rust"
"$work/embed_rust" "$work/rust.safetensors" >"$work/rust.out"
expect "$work/rust.out" '^step 1000  cost 0\.[01]'
expect "$work/rust.out" '^6[0-4] of 64 new points were told right'
expect "$work/rust.out" '^refused: layer "score" \(fc\): attribute "size": .* \[code 1, subject "size"\]'
expect "$work/rust.out" '^refused: .* made without training; it has no backward \[code 2\]'
"$work/prefix/bin/tenon" model show "$work/rust.safetensors" >"$work/show_rust.out"
expect "$work/show_rust.out" 'hidden.weight'
if "$work/embed_rust" "$work/nowhere/rust.safetensors" >/dev/null 2>"$work/error"; then
  echo "embed_rust succeeded without a folder for its model"
  exit 1
fi
expect "$work/error" '^embed_rust: .*nowhere/rust.safetensors.* \(code [0-9]+\)$'

# An error causes a message and an exit code, not a crash.
if "$work/embed_cpp/embed_cpp" "$work/nowhere" "$work/cpp.safetensors" 2>"$work/error"; then
  echo "embed_cpp succeeded without data"
  exit 1
fi
expect "$work/error" '^embed_cpp: reader "idx": .*nowhere'

# The plugins of examples/plugins, each in less than 100 lines, and the job that trains with them.
for plugin in "$source"/examples/plugins/*.cpp; do
  if [[ "$(wc -l <"$plugin")" -ge 100 ]]; then
    echo "$plugin has 100 lines or more"
    exit 1
  fi
done
cp -r "$source/examples/plugins" "$work/sound"
"$cmake" -S "$work/sound" -B "$work/sound-build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$c" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="-O0 $warnings" >"$work/sound.log"
"$cmake" --build "$work/sound-build" >"$work/sound.log" || {
  cat "$work/sound.log"
  exit 1
}
"$cmake" --install "$work/sound-build" --prefix "$work/prefix" >"$work/sound.log"
# The kernel for GPUs needs no toolkit; its layer is installed from the same folder.
mkdir "$work/gpu"
cp -r "$source/examples/plugins" "$source/examples/gpu_kernel" "$work/gpu"
"$cmake" -S "$work/gpu/gpu_kernel" -B "$work/gpu/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_C_COMPILER="$c" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="-O0 $warnings" >"$work/gpu.log"
"$cmake" --build "$work/gpu/build" >"$work/gpu.log" || {
  cat "$work/gpu.log"
  exit 1
}
"$work/prefix/bin/tenon" plugins info org.example.mu_law_cuda --plugins "$work/gpu/build" >"$work/gpu.out"
expect "$work/gpu.out" '^kernel mu_law_cuda for layer example.mu_law on cuda'
"$python" -B "$work/sound/generate" "$work/sound/tones.wav"
"$work/prefix/bin/tenon" train "$work/sound/forecast.toml" --check --no-save >"$work/sound.out"
expect "$work/sound.out" '^test  cost 0.00[0-9]+  snr 1[0-9]\.[0-9]+  \(248 samples'
head -c 3000 "$work/sound/tones.wav" >"$work/sound/short.wav"
if "$work/prefix/bin/tenon" train "$work/sound/forecast.toml" --no-save --set 'reader.train.files=["short.wav"]' \
  2>"$work/error"; then
  echo "a WAV file without its end is read"
  exit 1
fi
expect "$work/error" 'short.wav: ends within a chunk'
