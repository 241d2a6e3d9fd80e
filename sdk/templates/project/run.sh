#!/bin/sh
# Runs the program tenon with the installed plugins and with this one: sh run.sh VERB [OPTION]..., such as
#   sh run.sh train job.toml
# PLUGINS is the folder that this plugin was built into, INSTALLED that of Tenon's own plugins. SPDX-License-Identifier: MIT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tenon=${TENON:-tenon}
installed=${INSTALLED:-$("$tenon" plugins list --json | sed -n 's|.*"file": "\(.*\)/devices/cpu.so".*|\1|p')}
exec "$tenon" "$@" --plugins "${PLUGINS:-$here/build/lib/tenon/plugins}" --plugins "$installed"
