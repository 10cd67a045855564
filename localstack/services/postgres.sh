# shellcheck shell=bash disable=SC2154 # `here` is common.sh's
# PostgreSQL from the system's package. It is the one service that is not installed into a folder: it has no portable
# distribution, and every system has it.

pins() { echo "the system's"; }

install() {
  binaries && return
  system_package postgresql && binaries && return
  fail "needs PostgreSQL's server (the package postgresql: apt-get install postgresql)"
}

start() { exec bash "$here/postgres/serve" "$(binaries)" "$1"; }

healthy() { "$(binaries)/pg_isready" -q -h 127.0.0.1 -p "$1" -t 2; }

variables() { echo "LEASEHOLD_POSTGRES_ENDPOINT=postgres://127.0.0.1:$1/postgres?user=leasehold"; }

# Debian keeps the server's programs off the PATH.
binaries() {
  local folder found=
  for folder in /usr/lib/postgresql/*/bin "$(dirname "$(command -v initdb)")"; do
    [ ! -x "$folder/initdb" ] || [ ! -x "$folder/pg_isready" ] || found=$folder
  done
  [ -n "$found" ] && echo "$found"
}
