# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# Interpreters of Python that may have PyTorch, or NVIDIA's libraries. SPDX-License-Identifier: Apache-2.0

# Prints their paths, each once.
pythons() {
  local each
  for each in "$checkout/build-peers/bin/python" python3 python3.{14,13,12,11}; do command -v "$each"; done |
    awk '!seen[$0]++'
}

# Prints the folders of NVIDIA's libraries that the dynamic linker may not know: of toolkits and of packages for Python.
library_folders() {
  local python folder
  {
    printf '%s\n' "$build"/cuda/nvidia/*/lib /usr/local/cuda/lib64 /usr/local/cuda-1[32]*/lib64
    while read -r python; do
      limited 10 "$python" -c 'import glob, nvidia
for folder in nvidia.__path__: print(*glob.glob(glob.escape(folder) + "/*/lib"), sep="\n")' \
        >"$work/packages" 2>/dev/null
      cat "$work/packages"
    done < <(pythons)
  } | while read -r folder; do
    if compgen -G "$folder/libnvrtc.so.1[23]" >/dev/null || compgen -G "$folder/libcublasLt.so.1[23]" >/dev/null ||
      [[ -e "$folder/libcudnn.so.9" ]]; then
      echo "$folder"
    fi
  done | awk '!seen[$0]++'
}

# Sets `torch` to an interpreter for benchmarks/run with a PyTorch that can use the GPU; if there is none, to "", and
# `without_torch` to the first reason.
find_torch() {
  local python code reason
  torch="" without_torch=""
  while read -r python; do
    code=0
    limited 60 "$python" -c 'import sys
try:
    import numpy, torch
except ImportError as error:
    sys.exit(1 if error.name in ("numpy", "torch") else f"PyTorch cannot be imported: {error}")
if sys.version_info < (3, 11): sys.exit("PyTorch is there for Python " + sys.version.split()[0] + "; 3.11 is needed")
if not torch.cuda.is_available(): sys.exit(f"PyTorch {torch.__version__} finds no GPU")
print(torch.__version__)' >"$work/torch" 2>"$work/torch.errors" || code=$?
    if ((code == 0)); then
      torch="$python"
      row "PyTorch" "$(tail -n 1 "$work/torch"), $python" -
      return
    fi
    reason="$(grep -m 1 ^PyTorch "$work/torch.errors")" # others are of interpreters that do not start
    ((code != 124)) || reason="PyTorch was not imported in $limit s"
    without_torch="${without_torch:-${reason:+$reason, $python}}"
  done < <(pythons)
  row "benchmarks in PyTorch" "left out: ${without_torch:-no PyTorch is installed}" -
}
