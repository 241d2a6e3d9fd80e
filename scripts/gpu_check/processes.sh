# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu-check
# The processes of gpu-check, each with a limit, so that the whole ends in time. SPDX-License-Identifier: Apache-2.0
child="" share_end=$((whole - 10)) # the rest is for ending processes and for files
last_end=$share_end

# Gives the next part so many percent of the whole time, but none beyond its end: share <percent>
share() {
  share_end=$((SECONDS + whole * $1 / 100))
  ((share_end < last_end)) || share_end=$last_end
}

seconds_left() { echo $((share_end - SECONDS)); }

# Runs a command for at most so many seconds, and no longer than its part has: limited <seconds> <command...>
# Returns 124 if it was ended, `limit` then has its seconds, or if no time was left. What ignores SIGTERM is killed. The
# command has files, not pipes, for its output: a pipe that a process of its own holds open would never end.
limited() {
  local began=$SECONDS code=0
  limit=$(seconds_left)
  ((limit <= $1)) || limit=$1
  ((limit > 0)) || return 124
  timeout --kill-after=2 "$limit" "${@:2}" </dev/null 8>&- 9<&- &
  child=$!
  wait "$child" 2>/dev/null || code=$?
  child=""
  # timeout is killed, too, where it had to kill.
  if ((code == 137 && SECONDS - began >= limit)); then code=124; fi
  return "$code"
}

# Ends the process that runs, whose output a trap writes to unless told, and the table.
interrupted() {
  [[ -z "$child" ]] || kill "$child" 2>/dev/null
  close_table interrupted >&8
  exit 130
}

# Keeps others from checking this machine at the same time: they would take time from each other.
run_alone() {
  local lock="${TENON_GPU_CHECK_LOCK:-/tmp/tenon-gpu-check.lock}"
  command -v flock >/dev/null || return
  [[ -e "$lock" ]] || (umask 0 && : >"$lock") 2>/dev/null
  { exec 9<"$lock"; } 2>/dev/null || return # the file of somebody who forbids it
  flock -n 9 || refuse "another check runs on this machine ($lock is locked)"
}
