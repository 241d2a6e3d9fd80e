# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# Packs what gpu-check needs into an archive. SPDX-License-Identifier: Apache-2.0

# Copies examples with their data: copy_examples <folder>
copy_examples() {
  local name
  for name in tabular recommender; do
    mkdir -p "$1/$name"
    cp "$checkout/examples/$name/"*.toml "$1/$name/"
    "$checkout/examples/$name/generate" "$1/$name/data" >/dev/null
  done
  mkdir -p "$1/fashion_mnist"
  cp "$checkout/examples/fashion_mnist/mlp.toml" "$1/fashion_mnist/"
}

# Puts all that a check needs into the folder gpu-check of an archive: pack <file>
pack() {
  local folder program to
  folder="$(mktemp -d)" || exit 1
  to="$folder/gpu-check"
  (
    set -e
    mkdir -p "$to/"{bin,lib/tenon,tests}
    cp -r "$here/gpu-check" "$parts" "$to/"
    cp "$build/bin/tenon" "$to/bin/"
    cp -a "$build"/lib/libtenon.so* "$to/lib/"
    cp -a "$build/lib/tenon/plugins" "$to/lib/tenon/"
    cp "$build/tests/"{gpu_suite,test_gpu_measure,test_gpu_count.so} "$to/tests/"
    while read -r program _; do cp "$build/tests/$program" "$to/tests/"; done <"$build/tests/gpu_suite"
    copy_examples "$to/examples"
    # Programs of the benchmarks that run on a GPU (gpu_check.cmake).
    while read -r program; do cp "$build/bin/bench_$program" "$to/bin/"; done <"$build/tests/gpu_benchmarks"
    cd "$checkout"
    find benchmarks \( -name '*.py' -o -name run -o -name workloads.toml \) -type f -exec cp --parents {} "$to/" \;
    # Libraries that a machine may lack.
    ldd "$build"/bin/{tenon,bench_tiny} "$build/tests/test_gpu_measure" |
      awk '$1 ~ /^lib(boost|stdc|gcc)/ && !seen[$3]++ { print $3 }' | xargs -I{} cp -L {} "$to/lib/"
    strip --strip-debug "$to"/bin/* "$to"/tests/t* "$to"/lib/*.so* 2>/dev/null || true
    tar --owner=0 --group=0 -C "$folder" -cf "$1" gpu-check
  )
  local code=$?
  rm -rf "$folder"
  ((code == 0)) || return "$code"
  echo "$1: $(du -m "$1" | cut -f 1) MB"
}
