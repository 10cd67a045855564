# shellcheck shell=bash
# What the files in services/ use.

# Installs a package of the system: NAME. Only as root on Debian and its children, else it fails.
system_package() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
  apt-get install -y --no-install-recommends "$1" || { apt-get update && apt-get install -y --no-install-recommends "$1"; }
}

# A Python of at least 3.MINOR that runs and can make virtual environments. A name on the PATH is not enough: version
# managers put scripts there that only say that nothing is chosen.
python_from() {
  local minor=$1 candidate
  for candidate in python3.13 python3.14 python3 python3.12 python3.11 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
    "$candidate" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, $minor))" >/dev/null 2>&1 &&
      { command -v "$candidate"; return; }
  done
  fail "needs Python 3.$minor or later with venv and pip (the packages python3 and python3-venv, or: pyenv install 3.13)"
}

# A virtual environment with exactly what the file lists; wheels only, so that nothing needs a compiler.
virtual_environment() {
  local folder=$1 minor=$2 requirements=$3 python
  python=$(python_from "$minor") || return
  echo "$python: $("$python" --version)"
  "$python" -m venv "$folder" &&
    "$folder/bin/python" -m pip install --disable-pip-version-check --quiet --retries 2 \
      --no-deps --only-binary :all: -r "$requirements"
}

# shellcheck source-path=SCRIPTDIR
# A server of our own, EXAMPLE, as FILE in this folder. Built as the tests are, so that it shares what they have compiled.
example() {
  local built
  built=$(cd "$here/.." && cargo build --locked --profile test --features "$(. "$here/features.sh" && echo "$STORES")" \
    --example "$1" --message-format json-render-diagnostics) || return
  built=$(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' <<<"$built")
  # A copy, so that a later build does not touch what is running.
  cp "$built" "$2.new" && mv "$2.new" "$2"
}

# One HTTP/1.0 exchange with 127.0.0.1: METHOD PORT PATH BODY [HEADER...]. Prints the answer's head and body.
http() {
  local method=$1 port=$2 path=$3 body=$4 line
  shift 4
  exec 3<>"/dev/tcp/127.0.0.1/$port" || return
  { printf '%s\r\n' "$method $path HTTP/1.0" "Host: 127.0.0.1:$port" "Content-Length: ${#body}" "$@" "" &&
    printf '%s' "$body"; } >&3
  while IFS= read -r -t 10 line <&3 || [ -n "$line" ]; do printf '%s\n' "$line"; done
  exec 3>&-
} 2>/dev/null

# Whether a DynamoDB answers at this port.
lists_tables() {
  local scope=20260101/us-east-1/dynamodb/aws4_request
  http POST "$1" / '{}' "X-Amz-Target: DynamoDB_20120810.ListTables" "Content-Type: application/x-amz-json-1.0" \
    "X-Amz-Date: 20260101T000000Z" \
    "Authorization: AWS4-HMAC-SHA256 Credential=test/$scope, SignedHeaders=host, Signature=none" |
    grep TableNames >/dev/null
}
