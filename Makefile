# Thin: each target is one command; the logic is Python. `make` lists the targets.
.DEFAULT_GOAL := help
.PHONY: bench benchmarks help setup setup-serve check test demo worlds data train serve eval report sizes clean doctor docs results scripts tests

PY := .venv/bin/python
MODEL ?=
ARM ?= all
BENCH ?= offline
WORLD ?=
N ?=
CONFIG ?= configs/train/demo.yaml
eval_args = $(if $(WORLD),worlds=$(WORLD)) $(if $(N),n=$(N)) $(ARGS)

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## .venv, the git server, world data, tokenizer and small model
	@scripts/setup.sh

setup-serve:  ## .serve: vLLM for CPU in its own environment
	@scripts/setup.sh serve

check: setup  ## ruff, mypy, import contracts
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

test: setup setup-serve  ## every test that needs no GPU and no network; one: make test ARGS=tests/test_pool.py
ifdef ARGS
	$(PY) -m pytest $(ARGS)
else
	$(PY) -m pytest -n 2 --dist loadfile -m "not slow"
	$(PY) -m pytest -m slow
endif

demo: setup setup-serve  ## the whole path: worlds, rollouts, data, training, serving, two tables
	$(PY) scripts/demo.py $(ARGS)

worlds: setup  ## build the offline worlds (skips what is there)
	$(PY) scripts/build_worlds.py build $(ARGS)

data: setup  ## expert rollouts on the training tasks, filtered into data/demo
	$(PY) eval/run.py --model scripted --config configs/eval/rollouts.yaml $(ARGS)
	$(PY) scripts/curate.py --runs runs/rollouts/scripted --set demo

train: setup  ## fine-tune: make train CONFIG=configs/train/demo.yaml
	.venv/bin/accelerate launch $(LAUNCH) train/sft.py --config $(CONFIG) $(ARGS)

serve: setup setup-serve  ## an OpenAI-compatible server: make serve MODEL=runs/sft-demo
	$(if $(MODEL),,$(error MODEL is not set. Try: make serve MODEL=models/smollm2-135m-instruct))
	$(PY) scripts/serve.py --model $(MODEL) $(ARGS)

eval: setup  ## measure a model: make eval MODEL=scripted|path|url [ARM= WORLD= N=]
	$(if $(MODEL),,$(error MODEL is not set. Try: make eval MODEL=scripted, a checkpoint folder, or an endpoint URL))
	$(PY) eval/run.py --model $(MODEL) --arm $(ARM) --config configs/eval/$(BENCH).yaml $(eval_args)

report:  ## the comparison tables of results/
	$(PY) eval/report.py $(ARGS)

bench: setup  ## what a block costs, against in-process exec and the bare SDK client: results/executor
	$(PY) benchmarks/executor.py $(ARGS)

sizes:  ## the ten longest files
	@git ls-files '*.py' | xargs wc -l | sort -rn | sed -n 2,11p
