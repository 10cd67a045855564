# shellcheck shell=bash disable=SC2154 # `here` is common.sh's
# LocalStack's gateway without Docker. Its own DynamoDB engine is Amazon's DynamoDB Local, whose licence is not an open
# one; here a provider of ours (gateway/) stands in for it and forwards to dynoxide.

pins() { cat "$here/gateway/requirements.txt"; }

# Python 3.13: LocalStack 4.14.0 says 3.10, but names a type that older ones do not have.
install() { virtual_environment "$1" 13 "$here/gateway/requirements.txt"; }

# The engine.
prepare() { example dynamodb_emulator dynoxide; }

start() {
  export LEASEHOLD_DYNAMODB_EMULATOR=$PWD/dynoxide PYTHONPATH=$here/gateway
  export PROVIDER_OVERRIDE_DYNAMODB=dynoxide PROVIDER_OVERRIDE_S3=leasehold
  # hypercorn, because the default server (twisted) takes the port of GATEWAY_LISTEN and binds all interfaces.
  export GATEWAY_LISTEN=127.0.0.1:$1 GATEWAY_SERVER=hypercorn
  export SERVICES=dynamodb,sts,s3 STRICT_SERVICE_LOADING=1
  # Nothing is sent or fetched, and nothing written outside the folder.
  export DISABLE_EVENTS=1 SKIP_SSL_CERT_DOWNLOAD=1 DNS_ADDRESS=0
  export PYTHONDONTWRITEBYTECODE=1 HOME=$PWD/home XDG_CACHE_HOME=$PWD/home/cache TMPDIR=$PWD/home/tmp
  export LOCALSTACK_VOLUME_DIR=$PWD/volume FILESYSTEM_ROOT=$PWD/volume
  mkdir -p "$TMPDIR"
  rm -rf home/cache # an index of plugins, which would not see a change of ours
  exec bin/python -m localstack.runtime.main
}

# The second question is whether it is our provider that answered: where LocalStack cannot load one, it takes its own.
healthy() { lists_tables "$1" && http GET "$1" /_leasehold/engines "" | grep "^HTTP/1.[01] 200" >/dev/null; }

variables() { echo "LEASEHOLD_LOCALSTACK_ENDPOINT=http://127.0.0.1:$1"; }
