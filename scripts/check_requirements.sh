#!/usr/bin/env bash
# Does requirements.txt resolve as one environment (Python 3.11, Linux x86-64)? Resolves, installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$(command -v uv || echo .setup/uv/bin/uv)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$uv" pip compile -q requirements.txt --python-version 3.11 --python-platform x86_64-manylinux_2_28 -o "$out"
echo "requirements.txt resolves: $(grep -c '==' "$out") packages, $(grep -E '^(torch|vllm|deepspeed)==' "$out" | paste -sd' ')"
