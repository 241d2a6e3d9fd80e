#!/bin/sh
# Runs the program tenon with the installed plugins and with this one: sh run.sh VERB [OPTION]..., such as
#   sh run.sh train job.toml
# PLUGINS is the folder that this plugin was built into. SPDX-License-Identifier: MIT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "${TENON:-tenon}" "$@" --plugins "${PLUGINS:-$here/build/lib/tenon/plugins}"
