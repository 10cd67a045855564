# shellcheck shell=bash disable=SC2154 # `here` is common.sh's
# Azurite, the emulator of Azure Blob Storage.

pins() { cat "$here"/azurite/package*.json; }

install() {
  { command -v node && command -v npm; } >/dev/null || { fail "needs Node.js 20 or later with npm"; return; }
  cp "$here"/azurite/package*.json "$1" && cd "$1" && npm ci --no-audit --no-fund --ignore-scripts
}

# Idle connections stay open for longer than a client keeps them (90 s), so that the client closes them: a request that
# meets the server's close has no answer.
start() {
  exec node node_modules/azurite/dist/src/blob/main.js --blobHost 127.0.0.1 --blobPort "$1" \
    --inMemoryPersistence --skipApiVersionCheck --disableTelemetry --silent --blobKeepAliveTimeout 300
}

healthy() { http GET "$1" "/devstoreaccount1?comp=list" "" | grep -i "^server: azurite-blob/" >/dev/null; }

# The account and its key are Azurite's own, the same everywhere and public.
variables() {
  echo "LEASEHOLD_AZURITE_ENDPOINT=http://127.0.0.1:$1/devstoreaccount1"
  echo "LEASEHOLD_AZURITE_ACCOUNT=devstoreaccount1"
  echo "LEASEHOLD_AZURITE_KEY=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
}
