# Folders in which the scripts of tests work. SPDX-License-Identifier: Apache-2.0

# Empties a folder that an argument names: emptied <folder>. Not a repository: an argument may be wrong.
emptied() {
  if [[ -e "$1/.git" ]]; then
    echo "$1 is not a folder for tests: it is not emptied" >&2
    exit 1
  fi
  rm -rf "$1"
}
