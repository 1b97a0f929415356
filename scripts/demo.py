"""The whole path in one go: worlds, rollouts, data, training, serving, three arms, two tables.

    make demo                      # or: python scripts/demo.py [--seed 1] [--smoke]

Every stage is one of the commands the README prints, run as it is printed and timed. About 14 minutes on two
idle CPU cores, 8 GiB; --smoke walks the same path with two training steps, two held-out tasks and without the
untrained model. Output goes to runs/demo/ (--out): rollouts, checkpoint, results with every trajectory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from hypertool.errors import ConfigError
from hypertool.runs import need_space

ROOT = Path(__file__).resolve().parent.parent
NEEDED = 2_500_000_000  # bytes: a checkpoint of 540 MB, its optimiser-free copy while saving, logs
BASE = "models/smollm2-135m-instruct"
console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the whole path in one go.")
    parser.add_argument("--seed", type=int, default=0, help="of the training data order and of every sample")
    parser.add_argument("--out", default="runs/demo", help="where everything goes")
    parser.add_argument("--smoke", action="store_true", help="two training steps, two tasks, no untrained model")
    arguments = parser.parse_args()
    out, seed = f"{arguments.out}/seed{arguments.seed}", f"seed={arguments.seed}"
    trained = f"{out}/checkpoint"
    results = f"results={out}/results"
    few = ["n=2"] if arguments.smoke else []
    train = ["train/sft.py", "--config", "configs/train/demo.yaml", "--output_dir", trained]
    train += ["--seed", str(arguments.seed), "--dataset", f"{out}/data/demo/hypertool/train.jsonl"]
    train += ["--max_steps", "2"] if arguments.smoke else []
    small = ["eval/run.py", "--arm", "hypertool", "--config", "configs/eval/demo.yaml", seed, results, *few]
    rollouts = ["eval/run.py", "--model", "scripted", "--config", "configs/eval/rollouts.yaml", seed]
    rollouts += [f"results={out}", *(["n=8"] if arguments.smoke else [])]
    curate = ["scripts/curate.py", "--runs", f"{out}/rollouts", "--set", "demo", "--out", f"{out}/data"]
    launch = ["-m", "accelerate.commands.launch", "--config_file", "configs/accelerate/cpu.yaml"]
    stages = [
        ("worlds", ["scripts/build_worlds.py", "build"]),
        ("three arms, scripted expert", ["eval/run.py", "--model", "scripted", seed, results, *few]),
        ("rollouts on training tasks", rollouts),
        ("filters and SFT rows", curate),
        ("training", [*launch, *train]),
    ]
    if not arguments.smoke:
        untrained = ["--model", BASE, "--name", "smollm2-135m untrained"]
        stages.append(("serve and evaluate, untrained", [*small, *untrained]))
    stages.append(("serve and evaluate, trained", [*small, "--model", trained, "--name", "smollm2-135m trained"]))
    try:
        (ROOT / out).mkdir(parents=True, exist_ok=True)
        need_space(ROOT / out, NEEDED)
    except (ConfigError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    times = []
    for number, (title, command) in enumerate(stages, 1):
        shown = " ".join(command).replace("-m accelerate.commands.launch", "accelerate launch")
        console.print(f"\n[bold cyan]{number}/{len(stages)} {title}[/]\n[dim]$ {shown}[/]")
        started = time.monotonic()
        status = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment(), check=False).returncode
        times.append((title, time.monotonic() - started))
        if status:
            console.print(f"[bold red]stage {number} failed with exit status {status}[/]; the command above repeats it")
            return status
    console.print(f"\n[bold]Stages[/] (output: {out})")
    for title, seconds in times:
        console.print(f"  {seconds:7.1f} s  {title}")
    console.print(f"  {sum(seconds for _, seconds in times):7.1f} s  in all\n")
    report = ["eval/report.py", "--results", f"{out}/results", "--no-write"]
    status = subprocess.run([sys.executable, *report], cwd=ROOT, check=False).returncode
    console.print(NOTE)
    return status


NOTE = """
[bold]How to read these tables.[/] offline: what the interface alone does, since one scripted expert plays all three
arms on the same held-out tasks. demo: one small model before and after training, in the hypertool arm only. To make
135M parameters learn in minutes the demo is narrowed: the templates listed in configs/eval/demo.yaml, five read-only
git tools in the prompt, names quoted in the question, one short block a task; the block travels as a JSON tool call
through vLLM's hermes parser. Held-out tasks use repositories and authors never seen in training.
"""


def environment() -> dict[str, str]:
    """W&B stays offline unless the user chose otherwise."""
    return {"WANDB_MODE": "offline", "TOKENIZERS_PARALLELISM": "false", **os.environ}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("demo: interrupted; the same command keeps finished episodes and repeats the stage that ran")
        sys.exit(130)
