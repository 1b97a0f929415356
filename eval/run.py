"""Measure a model in the three arms on held-out tasks of the offline worlds.

    python eval/run.py --model scripted
    python eval/run.py --model models/smollm2-135m-instruct --arm hypertool worlds=repository n=24
    python eval/run.py --model http://127.0.0.1:8000/v1

A path is served by scripts/serve.py for the time of the run; a URL is any OpenAI-compatible endpoint; `scripted`
is the experts that ship with the templates. Writes results/<benchmark>/<model>/<arm>-<date>-<commit>-s<seed>/
and resumes there. CPU: seconds for `scripted`, minutes for a 135M model.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import worlds
from hypertool import config, prompts, rollout, runs, tables
from hypertool.agent import Budget
from hypertool.errors import ConfigError, HyperToolError, nearest
from hypertool.executors import AUTO
from hypertool.interface import open_parts
from hypertool.model import EndpointModel, Model, ScriptedModel
from hypertool.sandbox import Limits
from hypertool.servers import ServerConfig, load_servers
from hypertool.tasks import Task, task_set_hash
from worlds.world import sample_tasks

ROOT = Path(__file__).resolve().parent.parent
SCRIPTED = "scripted"
console = Console(stderr=True)


@dataclass(frozen=True)
class EvalConfig:
    """One evaluation. Every field is a key of configs/eval/*.yaml and of `key=value` on the command line."""

    benchmark: str = "offline"
    worlds: tuple[str, ...] = ("repository", "location")
    templates: tuple[str, ...] = ()  # empty: all templates of the worlds
    split: str = "test"
    n: int = 24  # tasks per world
    seed: int = 0  # of the task sample and the endpoint
    trials: int = 1  # episodes per task
    concurrency: int = 4
    temperature: float = 0.0
    max_tokens: int = 1024  # new tokens a turn
    timeout_s: float = 600.0  # one completion
    max_turns: int = Budget.max_turns
    max_outer_calls: int = Budget.max_outer_calls
    max_inner_calls: int = Budget.max_inner_calls
    context_tokens: int = Budget.context_tokens
    tokenizer: str = "models/qwen3-tokenizer/tokenizer.json"
    executor: str = AUTO  # auto, or one of hypertool.executors; never replaced by another
    results: str = "results"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the arms of a model on held-out tasks.")
    parser.add_argument("--model", required=True, help="scripted, an endpoint URL, or a checkpoint folder")
    parser.add_argument("--arm", default="all", help=f"all, or one of {', '.join(prompts.ARMS)}")
    parser.add_argument("--config", type=Path, default=ROOT / "configs/eval/offline.yaml")
    parser.add_argument("--name", help="how results call the model (default: --model)")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="override a key of the config")
    arguments = parser.parse_intermixed_args()
    try:
        settings = config.load(EvalConfig, arguments.config, arguments.overrides)
        arms = prompts.ARMS if arguments.arm == "all" else (prompts.check_arm(arguments.arm),)
        name = arguments.name or arguments.model
        tasks, servers, world_hash = load_tasks(settings)
        count = prompts.load_counter(ROOT / settings.tokenizer)
        with endpoint(arguments.model, Path(settings.results)) as url:
            finished = asyncio.run(evaluate(settings, arms, name, url, tasks, servers, world_hash, count))
    except HyperToolError as error:
        console.print("[bold red]eval:[/] " + escape(str(error)), highlight=False)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; finished episodes are kept. Run the same command to go on.")
        return 130
    Console().print(tables.terminal(f"{settings.benchmark}: {name}", finished))
    Console().print(tables.caption(finished), style="dim", soft_wrap=True)
    return 0


def load_tasks(settings: EvalConfig) -> tuple[list[Task], dict[str, ServerConfig], dict[str, str]]:
    """Sample the tasks of each world; returns them with the worlds' servers and data hashes."""
    rows: list[dict[str, Any]] = []
    servers: dict[str, ServerConfig] = {}
    hashes = {}
    for name in settings.worlds:
        try:
            world = worlds.load(name)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        if not world.ready():
            raise ConfigError(f"world {name!r} is not built; run: make worlds")
        chosen = {
            key: value for key, value in world.TEMPLATES.items() if not settings.templates or key in settings.templates
        }
        try:
            rows += sample_tasks(chosen, name, settings.split, settings.n, settings.seed) if chosen else []
        except ValueError as error:
            raise ConfigError(str(error)) from error
        servers.update(load_servers(world.SERVERS))
        hashes[name] = world.HASH[:12]
    known = [key for name in settings.worlds for key in worlds.load(name).TEMPLATES]
    for key in settings.templates:
        if key not in known:
            raise ConfigError(f"unknown template {key!r}. {nearest(key, known)}Templates: {', '.join(known)}.")
    return [Task.from_dict(row) for row in rows], servers, hashes


@contextmanager
def endpoint(model: str, results: Path) -> Iterator[str | None]:
    """The URL to ask: the given one, or that of a server started here for a checkpoint folder; None if scripted."""
    if model == SCRIPTED or "://" in model:
        yield None if model == SCRIPTED else model
        return
    if not Path(model).is_dir():
        raise ConfigError(f"model {model!r} is neither 'scripted', a URL nor a checkpoint folder")
    results.mkdir(parents=True, exist_ok=True)
    log = results / "serve.log"
    command = [sys.executable, str(ROOT / "scripts/serve.py"), "--model", model, "--port", "0"]
    with log.open("w+", encoding="utf-8") as output:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True)
        try:
            assert server.stdout is not None
            with console.status(f"serving {model}, ready in a minute or two (log: {log})"):
                line = server.stdout.readline()
            if not line.startswith("READY "):
                server.wait()
                words = log.read_text(encoding="utf-8").strip().split("\n")[-5:]
                raise ConfigError("\n".join([f"the server for {model} did not start; {log} ends with:", *words]))
            yield line.split()[1]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=60)


async def evaluate(
    settings: EvalConfig,
    arms: tuple[str, ...],
    name: str,
    url: str | None,
    tasks: list[Task],
    servers: dict[str, ServerConfig],
    world_hash: dict[str, str],
    count: prompts.TokenCount,
) -> list[tables.Finished]:
    """Play every arm; returns the finished runs."""
    budget = Budget(settings.max_turns, settings.max_outer_calls, settings.max_inner_calls, settings.context_tokens)
    limits = Limits()
    source = runs.provenance(ROOT)
    root = Path(settings.results) / settings.benchmark / runs.slug(name)
    finished = []
    client: EndpointModel | None = None
    if url is not None:
        client = await connect(settings, url)

    def model_for(task: Task, arm: str) -> Model:
        if client is not None:
            return client
        template = worlds.load(task.world).TEMPLATES[task.template]
        return ScriptedModel(template.expert(arm, task.raw["params"]))

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
    async with open_parts(servers, executor_name=settings.executor) as parts:
        shared = {
            **{
                key: value
                for key, value in dataclasses.asdict(settings).items()
                if key not in ("results", "concurrency")
            },
            "tasks_hash": task_set_hash(tasks),
            "prompt_hash": prompts.prompt_hash(),
            "world_hash": world_hash,
            "tools_hash": prompts.tools_hash(parts[0].specs()),
            "budget": dataclasses.asdict(budget),
            "limits": dataclasses.asdict(limits),
            "executor": parts[1].name,
        }
        with bar:
            for arm in arms:
                resolved = {"model": name, "arm": arm, **shared}
                run = runs.Run.open(root, arm, settings.seed, resolved, source)
                step = bar.add_task(f"{arm} -> {os.path.relpath(run.folder)}", total=len(tasks) * settings.trials)
                rows = await rollout.play(
                    run,
                    tasks,
                    arm,
                    model_for,
                    parts,
                    name=name,
                    count=count,
                    budget=budget,
                    limits=limits,
                    trials=settings.trials,
                    concurrency=settings.concurrency,
                    progress=lambda _row, step=step: bar.advance(step),
                )
                bar.update(step, completed=len(rows))
                run.finish()
                done = tables.read_finished(run.folder)
                assert done is not None
                finished.append(done)
    if client is not None:
        await client.close()
    return finished


async def connect(settings: EvalConfig, url: str) -> EndpointModel:
    """A client for the first model the endpoint serves. Raises ModelError if it cannot be reached."""
    options = {
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "timeout_s": settings.timeout_s,
        "api_key": os.environ.get("OPENAI_API_KEY", "none"),
    }
    probe = EndpointModel(url, "", **options)
    served = await probe.first_model()
    await probe.close()
    return EndpointModel(url, served, **options)


if __name__ == "__main__":
    sys.exit(main())
