#!/usr/bin/env bash
# How large the Lambda example is, and how long it takes to start, beside the same handler without this library
# (examples/lambda/sdk_only.rs). Figures: docs/performance.md. Not part of CI: the build takes minutes.
#
#   benches/lambda_size.sh            built for size, as docs/functions.md says
#   benches/lambda_size.sh release    cargo's release profile, without symbols
#   STARTS=50 benches/lambda_size.sh  how often each is started (21)
#
# Needs python3. Nothing is sent but to a stand-in for the runtime API on 127.0.0.1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-small} in
  small) profile=(--config 'profile.release.opt-level="z"' --config 'profile.release.lto="fat"'
    --config 'profile.release.codegen-units=1' --config 'profile.release.panic="abort"') ;;
  release) profile=() ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
esac

cargo build --locked --release "${profile[@]}" --config 'profile.release.strip="symbols"' \
  --features __lambda --example lambda --example lambda_sdk_only

examples=${CARGO_TARGET_DIR:-target}/release/examples
for name in lambda_sdk_only lambda; do
  printf '%-16s %9d bytes, %9d zipped\n' "$name" "$(stat -c %s "$examples/$name")" "$(gzip -9 <"$examples/$name" | wc -c)"
done
python3 benches/lambda_start.py "${STARTS:-21}" "$examples/lambda_sdk_only" "$examples/lambda"
