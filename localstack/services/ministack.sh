# shellcheck shell=bash disable=SC2154 # `here` is common.sh's
# MiniStack, an open drop-in for LocalStack.

pins() { cat "$here/ministack/requirements.txt"; }

install() { virtual_environment "$1" 10 "$here/ministack/requirements.txt"; }

start() {
  # It binds all interfaces unless told otherwise, and keeps a file in TMPDIR.
  BIND_HOST=127.0.0.1 GATEWAY_PORT=$1 TMPDIR=$PWD exec bin/ministack
}

healthy() { lists_tables "$1"; }

variables() { echo "LEASEHOLD_MINISTACK_ENDPOINT=http://127.0.0.1:$1"; }
