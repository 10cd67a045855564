# shellcheck shell=bash
# What up and down share: which services there are, which processes are theirs, and where things are kept.
#
# A service is a file in services/ with these functions, each called in a subshell of its own:
#   pins             prints what says what is installed; a change of it installs anew
#   install FOLDER   installs into the empty folder, or fails; its output goes to a log
#   prepare          (may be left out) before every start, in the folder; its output is shown
#   start PORT       in the folder, becomes the server, by exec, on 127.0.0.1:PORT; what it prints goes to a log
#   healthy PORT     whether the server answers as it should
#   variables PORT   prints the lines `NAME=value` for .env

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/.cache
env_file=$here/.env

services() {
  local file
  for file in "$here"/services/*.sh; do basename "$file" .sh; done
}

# Puts the services that the arguments name into `names`; all, where there are none.
choose() {
  local name
  names=("$@")
  [ ${#names[@]} -gt 0 ] || mapfile -t names < <(services)
  for name in "${names[@]}"; do
    services | grep -x -- "$name" >/dev/null || { fail "no such service: $name; there is: $(services | tr "\n" " ")"; exit 2; }
  done
}

# The comment at the head of the script that asks.
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

fail() {
  printf '%s\n' "$*" >&2
  return 1
}

# --- Processes ------------------------------------------------------------------------------------
# Every process of a service carries a mark in its environment, its children too. A process id alone would not do:
# it may be somebody else's by now, and it does not lead to the children of a server that was killed.
mark() { echo "LEASEHOLD_SERVICE=$cache/$1"; }

processes() { grep -lszxF "$(mark "$1")" /proc/[0-9]*/environ | cut -d/ -f3; }

# Ends all that a service has running: asks, and after ten seconds insists.
stop() {
  local signal tries pids
  for signal in TERM KILL; do
    for ((tries = 0; tries < 50; tries++)); do
      pids=$(processes "$1")
      [ -n "$pids" ] || { rm -f "$cache/$1.port"; return 0; }
      # shellcheck disable=SC2086 # several ids
      [ $tries -gt 0 ] || kill -s $signal $pids 2>/dev/null
      sleep 0.2
    done
  done
  fail "$1: process $pids does not end"
}

# --- Ports ----------------------------------------------------------------------------------------
port_of() { cat "$cache/$1.port" 2>/dev/null; }

is_up() {
  local port
  port=$(port_of "$1") && [ -n "$(processes "$1")" ] && (load "$1" && healthy "$port")
}

load() {
  # shellcheck disable=SC2329 # up calls it
  prepare() { :; } # unless the file has its own
  # shellcheck source=/dev/null
  . "$here/services/$1.sh"
}

# --- .env -----------------------------------------------------------------------------------------
# Lists what is up; there is no file when nothing is.
write_env() {
  local name lines=""
  for name in $(services); do
    [ -z "$(port_of "$name")" ] || lines+=$(load "$name" && variables "$(port_of "$name")" | sed 's/^/export /')$'\n'
  done
  [ -n "$lines" ] || { rm -f "$env_file"; return; }
  printf '# Written by localstack/up: what is up now.\n%s' "$lines" >"$env_file.new" && mv "$env_file.new" "$env_file"
}

# One at a time per clone. The lock goes with this process: what is started must not hold it (9>&-).
lock() {
  [ -d /proc/self ] || { fail "this needs Linux's /proc; elsewhere take Docker: localstack/compose.yaml"; exit 1; }
  mkdir -p "$cache" && exec 9>"$cache/lock" || exit 1
  ! command -v flock >/dev/null || flock -w 900 9 || { fail "another localstack/up or down does not end"; exit 1; }
}
