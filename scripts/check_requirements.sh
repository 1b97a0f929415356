#!/usr/bin/env bash
# Resolves requirements.txt as one environment for Linux x86_64 and Python 3.11: metadata only, nothing installed.
#   scripts/check_requirements.sh        a minute at most; the resolver's own words name pins that disagree
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$(command -v uv || echo .setup/uv/bin/uv)
[ -x "$uv" ] || { echo "check_requirements: uv is missing. Run: make setup" >&2; exit 2; }
resolved=$("$uv" pip compile requirements.txt --quiet --no-annotate --no-header \
  --python-version 3.11 --python-platform x86_64-unknown-linux-gnu)
echo "requirements.txt resolves as one environment of $(grep -c == <<< "$resolved") packages:"
grep -E '^(torch|transformers|trl|accelerate|deepspeed|vllm|mcp|openai)==' <<< "$resolved"
