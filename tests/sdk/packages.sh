#!/usr/bin/env bash
# Makes the Debian packages and checks them: names and dependencies, no file in two packages, and that program, training
# and the project of a plugin work in a folder into which all of them were unpacked:
#   packages.sh <cmake> <build folder> <work folder>
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

cmake="$1" build="$2" work="$3"
# shellcheck source=tests/support/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/../support/scratch.sh"
emptied "$work"
mkdir -p "$work/root"
"${cmake%/*}/cpack" -G DEB --config "$build/CPackConfig.cmake" -B "$work/packages" \
  -D CPACK_DEBIAN_COMPRESSION_TYPE=none >"$work/cpack.log" 2>&1 || {
  cat "$work/cpack.log"
  exit 1
}

# depends <package> <pattern>...: the package exists, and its dependencies match the patterns.
depends() {
  local file=("$work/packages/$1"_*.deb) found
  found="$(dpkg-deb -f "${file[0]}" Depends)"
  for pattern in "${@:2}"; do
    grep -qE -- "(^|, )$pattern" <<<"$found" || {
      echo "$1 does not depend on $pattern: $found"
      exit 1
    }
  done
  dpkg-deb -x "${file[0]}" "$work/root"
  dpkg-deb -c "${file[0]}" | awk '$1 !~ /^d/ { print $6 }' >"$work/$1.files"
}
depends libtenon0 'libc6 \(>=' 'libstdc\+\+6 \(>='
depends tenon-plugins 'libtenon0 \(= ' 'libc6 \(>=' 'libpng16-16' 'libturbojpeg0'
depends tenon 'libtenon0 \(= ' 'tenon-plugins \(= ' 'libboost-program-options'
depends libtenon-dev 'libtenon0 \(= ' 'tenon-sdk \(= '
depends tenon-sdk 'tenon \(= ' 'libdlpack-dev'
if [[ "$(find "$work/packages" -maxdepth 1 -name '*.deb' | wc -l)" -ne 5 ]]; then
  echo "expected five packages:"
  ls "$work/packages"
  exit 1
fi
sort "$work"/*.files | uniq -d >"$work/twice"
if [[ -s "$work/twice" ]]; then
  echo "files in two packages:"
  cat "$work/twice"
  exit 1
fi
cluster=()
[[ ! -x "$build/bin/tenon-dist" ]] || cluster=(tenon:usr/bin/tenon-dist tenon:usr/bin/tenon-dist-image)
for file in "${cluster[@]}" tenon:usr/bin/tenon-launch libtenon0:usr/lib/libtenon.so.0 libtenon0:usr/lib/libtenon_arrow.so.0 tenon:usr/bin/tenon tenon:usr/share/doc/tenon/README.md \
  tenon-plugins:usr/lib/tenon/plugins/layers/fc.so libtenon-dev:usr/include/tenon/tenon.h \
  libtenon-dev:usr/lib/pkgconfig/tenon.pc tenon-sdk:usr/include/tenon/plugin.h \
  tenon-sdk:usr/share/tenon/sdk/rust/tenon_plugin.rs; do
  grep -qx "./${file#*:}" "$work/${file%%:*}.files" || {
    echo "the package ${file%%:*} lacks ${file#*:}"
    exit 1
  }
done

# In the folder: the program finds library, plugins and templates beside it.
export PATH="$work/root/usr/bin:$PATH"
cd "$work"
tenon version >version
tenon plugins new maker.bent --kind layer --language c >made
make -C bent check CFLAGS=-O1 >bent.log 2>&1 || {
  cat bent.log
  exit 1
}
