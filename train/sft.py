"""Supervised fine-tuning: a model learns to write the assistant turns of verified trajectories.

    accelerate launch train/sft.py --config configs/train/demo.yaml            # 2 CPU cores, about 6 minutes
    accelerate launch train/sft.py --config configs/train/demo.yaml --dry-run  # what would be trained on

One YAML is one run: the keys of TRL's SFTConfig and ModelConfig and of DataArguments below; a flag overrides a
key. Rows are `{"task_id", "arm", "messages", "tools"}`, rendered by the chat template that the checkpoint then
carries and the server serves. Only assistant turns are trained, their end token included; the mask comes from
the template's generation tags. A row longer than max_length is dropped, never cut: its answer stands at the end.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import netrc
import os
import random
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
import yaml
from accelerate import PartialState
from datasets import Dataset
from transformers import AutoTokenizer, DynamicCache, PreTrainedTokenizerBase
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser, get_peft_config, get_quantization_config

from hypertool.errors import ConfigError, boundary, nearest
from hypertool.prompts import CHAT_TEMPLATE, prompt_hash
from hypertool.runs import MIN_FREE, need_space, provenance

QWEN3_TOKENIZER = Path("models/qwen3-tokenizer")  # stands in for a dry run where no model hub can be reached
IGNORED = -100  # the label of a token that is not trained


@dataclass
class DataArguments:
    """What to train on, and how a batch is run."""

    dataset: list[str] = field(default_factory=list, metadata={"help": "JSON-lines files of SFT rows"})
    shared_prefix: bool = field(
        default=False, metadata={"help": "Run what all rows of a batch begin with once (exact; one process)"}
    )
    interleave: bool = field(
        default=False, metadata={"help": "Deal rows out by kind of task, in turn, in an order fixed by the seed"}
    )
    global_batch_size: int | None = field(
        default=None, metadata={"help": "Rows a step over all processes; any other product is refused"}
    )
    cpu_threads: int | None = field(
        default=None,
        metadata={"help": "Threads without a GPU. Default: OMP_NUM_THREADS if above 1, else all cores"},
    )
    dry_run: bool = field(default=False, metadata={"help": "Show config, rows and token counts; load no weights"})

    def __post_init__(self) -> None:
        self.dataset = [self.dataset] if isinstance(self.dataset, str) else self.dataset  # `dataset: x` in YAML


ARGUMENTS = (DataArguments, SFTConfig, ModelConfig)


class Trainer(SFTTrainer):
    """SFTTrainer that counts the tokens it trains, and can run the common beginning of a batch once.

    With `shared_prefix`: every row begins with the same system turn, half of a short row. It is run as one row, its
    keys and values are repeated for each row, and only the rest of each row is run; gradients flow back through the
    cache. The LM head is applied to labelled positions only, where TRL on a CPU scores every position. Loss and
    gradients are those of SFTTrainer.
    """

    shared_prefix = False
    trained_tokens = 0

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        ids, labels = inputs["input_ids"], inputs["labels"]
        if model.training:
            self.trained_tokens += int(self.accelerator.gather((labels != IGNORED).sum()).sum())
            self._metrics["train"]["trained_tokens"] = [self.trained_tokens]
        start = prefix_length(ids, labels) if self.shared_prefix and model.training else 0
        if start == 0:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        backbone, cache = model.base_model, DynamicCache(config=model.config)
        backbone(input_ids=ids[:1, :start], past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(ids))
        hidden = backbone(
            input_ids=ids[:, start:],
            attention_mask=inputs["attention_mask"],  # over prefix and rest: row lengths differ
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        targets = labels[:, start + 1 :]  # position i predicts token i + 1
        trained = targets != IGNORED
        logits = model.get_output_embeddings()(hidden[:, :-1][trained]).float()
        loss = torch.nn.functional.cross_entropy(logits, targets[trained], reduction="sum")
        accuracy = (logits.argmax(-1) == targets[trained]).float().mean().item()
        self._metrics["train"]["mean_token_accuracy"].append(accuracy)
        self._total_train_tokens += int(inputs["attention_mask"].sum())
        self._metrics["train"]["num_tokens"] = [self._total_train_tokens]
        return loss / (trained.sum() if num_items_in_batch is None else num_items_in_batch)


def prefix_length(ids: torch.Tensor, labels: torch.Tensor) -> int:
    """How many leading tokens all rows share, ending before the position that predicts the first label."""
    ends = ((ids != ids[:1]).any(dim=0), (labels != IGNORED).any(dim=0))
    differs, labelled = (int(end.nonzero()[0]) if end.any() else ids.shape[1] for end in ends)
    return max(0, min(differs, labelled - 1))


def parse(argv: list[str]) -> tuple[Path, list[str], DataArguments, SFTConfig, ModelConfig]:
    """Command line over YAML over defaults: the config file, the keys that were set, the three groups."""
    argv = [part for word in argv for part in (word.split("=", 1) if word.startswith("--") else [word])]
    if "--help" in argv:
        TrlParser(ARGUMENTS).parse_args(["--help"])
    if "--config" not in argv:
        default = "sft_qwen3_8b" if torch.cuda.is_available() else "demo"
        argv = ["--config", f"configs/train/{default}.yaml", *argv]
    path = Path(*argv[argv.index("--config") + 1 :][:1])
    if not path.is_file():
        raise ConfigError(f"{path}: no such config file. Try: --config configs/train/demo.yaml")
    with boundary(ConfigError, str(path)):
        given = {key: str(path) for key in yaml.safe_load(path.read_text(encoding="utf-8"))}
    given |= {word[2:].replace("-", "_"): "command line" for word in argv if word.startswith("--")}
    valid = {entry.name for group in ARGUMENTS for entry in fields(group) if entry.init}
    for key, where in given.items():
        if not {key, key.removeprefix("no_")} & (valid | {"config", "env"}):
            raise ConfigError(f"{where}: unknown key {key!r}. {nearest(key, valid)}All keys: train/sft.py --help")
    if "dry_run" in given and not torch.cuda.is_available():
        argv += ["--use_cpu"]  # else a bf16 config is refused on a machine that only looks at it
    with boundary(ConfigError, str(path)):
        groups = TrlParser(ARGUMENTS).parse_args_and_config(argv)
    keys = [key for key in dict.fromkeys(key.removeprefix("no_") for key in given) if key in valid - {"dry_run"}]
    return path, keys, *groups


def resolved(keys: list[str], *groups: Any) -> str:
    """The keys that were set, with their final values; as YAML it starts the run again."""
    values = {key: getattr(group, key) for key in keys for group in groups if hasattr(group, key)}
    return yaml.safe_dump({key: getattr(value, "value", value) for key, value in values.items()}, sort_keys=False)


def check_batch(data: DataArguments, config: SFTConfig, processes: int) -> None:
    rows, steps = config.per_device_train_batch_size, config.gradient_accumulation_steps
    if data.global_batch_size not in (None, rows * steps * processes):
        raise ConfigError(
            f"global_batch_size is {data.global_batch_size}, but {rows} rows x {steps} accumulation steps x "
            f"{processes} processes is {rows * steps * processes}. Change --gradient_accumulation_steps."
        )
    if data.shared_prefix and (processes > 1 or config.activation_checkpointing or config.packing):
        raise ConfigError(
            "shared_prefix calls the model past its distributed wrapper and keeps the prefix for the backward "
            "pass. It needs one process, activation_checkpointing: false and packing: false."
        )


def prepare_machine(data: DataArguments, config: SFTConfig, source: str | None) -> None:
    """Threads, W&B and room for the weights, decided before anything heavy loads."""
    if not torch.cuda.is_available():
        asked = int(os.environ.get("OMP_NUM_THREADS") or 1)  # accelerate sets 1 when nobody asked
        cores = len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        torch.set_num_threads(data.cpu_threads or (asked if asked > 1 else max(1, cores)))
    if "wandb" in config.report_to and "WANDB_MODE" not in os.environ:
        try:
            key = os.environ.get("WANDB_API_KEY") or netrc.netrc().authenticators("api.wandb.ai")
        except (OSError, netrc.NetrcParseError):
            key = None
        os.environ["WANDB_MODE"] = "online" if key else "offline"
    for name, value in (("PROJECT", "hypertool"), ("JOB_TYPE", "sft"), ("DIR", config.output_dir)):
        os.environ.setdefault(f"WANDB_{name}", value)
    folder = Path(config.output_dir)
    with boundary(ConfigError, f"output_dir {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    weights = sum(path.stat().st_size for path in Path(source or "").glob("*.safetensors"))
    need_space(folder, max(MIN_FREE, 2 * weights))  # a full disk is noticed before the work, not after it


def load_tokenizer(source: str | None, template: str | None, dry_run: bool) -> PreTrainedTokenizerBase:
    """The model's tokenizer with the chat template of this repository."""
    if not source or (source.startswith(("models/", ".", "/")) and not Path(source).is_dir()):
        raise ConfigError(
            f"model_name_or_path is {source!r}: no such folder. A hub id such as Qwen/Qwen3-8B will do, or "
            "`python scripts/fetch_models.py --dest models` makes models/smollm2-135m-instruct."
        )
    if Path(source).is_dir() and not (Path(source) / "tokenizer_config.json").is_file():
        raise ConfigError(f"{source}: no tokenizer_config.json there. Copy its base model's tokenizer files into it.")
    if dry_run and "Qwen3" in source and QWEN3_TOKENIZER.is_dir():
        print(f"tokenizer  {QWEN3_TOKENIZER}, the same vocabulary, stands in for that of {source}")
        source = str(QWEN3_TOKENIZER)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
    except OSError as error:
        hint = f" For a dry run: python scripts/fetch_models.py --only {QWEN3_TOKENIZER.name}." if dry_run else ""
        raise ConfigError(f"{source}: no such folder, and the model hub did not give it.{hint} {error}") from error
    tokenizer.chat_template = Path(template or CHAT_TEMPLATE).read_text(encoding="utf-8")
    return tokenizer


def read_rows(paths: list[str]) -> tuple[list[dict[str, Any]], str]:
    """All rows of the files in order, and 12 hex digits over the bytes."""
    rows, digest = [], hashlib.sha256()
    for path in map(Path, paths):
        if not path.is_file():
            raise ConfigError(f"{path}: no such data file. `make data` makes it.")
        digest.update(path.read_bytes())
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if line.strip():
                with boundary(ConfigError, f"{path}:{number}"):
                    rows.append(json.loads(line))
                if missing := {"task_id", "messages", "tools"} - rows[-1].keys():
                    raise ConfigError(f"{path}:{number}: the row has no {', '.join(sorted(missing))}")
    return rows, digest.hexdigest()[:12]


def interleave(rows: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Rows of each kind of task in turn, so that batches hold all kinds. A kind is a task_id less its number."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row["task_id"].rpartition("-")[0], []).append(row)
    shuffle = random.Random(seed).shuffle
    for kind in kinds.values():
        shuffle(kind)
    return [row for turn in itertools.zip_longest(*kinds.values()) for row in turn if row]


def tokenize(row: dict[str, Any], tokenizer: PreTrainedTokenizerBase, assistant_only: bool) -> dict[str, list[int]]:
    """Token ids and labels of one row. Raises ConfigError with its task_id if nothing in it is trained.

    Not left to TRL, so that every row is counted by name and nested messages never become Arrow structs, which
    would write the argument names of one tool into the calls of another.
    """
    tools = json.loads(row["tools"] or "[]") or None
    encoded = tokenizer.apply_chat_template(
        row["messages"], tools=tools, return_dict=True, return_assistant_tokens_mask=assistant_only
    )
    ids = list(encoded["input_ids"])
    mask = encoded["assistant_masks"] if assistant_only else [1] * len(ids)
    if not any(mask):
        raise ConfigError(
            f"task {row['task_id']!r}: no token would be trained. The row has no assistant turn, or the chat "
            "template has no generation tags."
        )
    return {"input_ids": ids, "labels": [i if m else IGNORED for i, m in zip(ids, mask, strict=True)]}


def show(row: dict[str, list[int]], tokenizer: PreTrainedTokenizerBase) -> str:
    """The row as text, what is trained between ⟦ and ⟧."""
    pairs = zip(row["input_ids"], row["labels"], strict=True)
    runs = itertools.groupby(pairs, key=lambda pair: pair[1] != IGNORED)
    texts = [(trained, tokenizer.decode([token for token, _ in run])) for trained, run in runs]
    return "".join(f"⟦{text}⟧" if trained else text for trained, text in texts)


def main(path: Path, keys: list[str], data: DataArguments, config: SFTConfig, model: ModelConfig) -> None:
    first = PartialState().is_main_process
    say = print if first else lambda *_, **__: None
    settings = resolved(keys, data, config, model)
    say(f"config     {path}\n{settings}")
    if not data.dry_run:
        check_batch(data, config, PartialState().num_processes)
        prepare_machine(data, config, model.model_name_or_path)

    tokenizer = load_tokenizer(model.model_name_or_path, config.chat_template_path, data.dry_run)
    if data.dry_run and not all(Path(name).is_file() for name in data.dataset):
        say(f"rows       none yet: `make data` makes {', '.join(data.dataset)}")
        return
    rows, data_hash = read_rows(data.dataset)
    if data.interleave:
        rows = interleave(rows, config.seed)
        config.train_sampling_strategy = "sequential"
    limit = config.max_length or sys.maxsize
    kept, too_long = [], []
    for row in rows:
        encoded = tokenize(row, tokenizer, config.assistant_only_loss)
        fits = len(encoded["input_ids"]) <= limit
        (kept if fits else too_long).append(encoded if fits else row["task_id"])
    if not kept:
        raise ConfigError(f"no row to train on: {', '.join(data.dataset)} has {len(rows)}, longer than {limit} tokens")
    lengths = sorted(len(row["input_ids"]) for row in kept)
    trained = sum(label != IGNORED for row in kept for label in row["labels"])
    say(f"rows       {len(kept)} kept, {len(too_long)} dropped for more than {limit} tokens {too_long[:5] or ''}")
    say(f"tokens     {sum(lengths)}, trained {trained} ({trained / sum(lengths):.0%}); longest row {lengths[-1]}")
    say(f"data       {data_hash}, prompts {prompt_hash()}")
    if data.dry_run:
        say(f"first row  {show(kept[0], tokenizer)}")
        return

    say(f"output     {config.output_dir}; W&B {os.environ.get('WANDB_MODE') if config.report_to else 'not used'}")
    facts = provenance(Path(__file__).parent) | {
        "dataset": data.dataset, "data_sha256": data_hash, "prompt_hash": prompt_hash(), "rows": len(kept),
        "rows_too_long": too_long, "tokens": sum(lengths), "trained_tokens": trained,
    }  # fmt: skip
    config.run_name = config.run_name or f"{path.stem}-{facts['commit'][:7]}"
    options = {"dtype": model.dtype, "attn_implementation": model.attn_implementation}
    config.model_init_kwargs = options | (config.model_init_kwargs or {})
    config.assistant_only_loss = False  # already in the labels; TRL would look for the messages
    config.chat_template_path = None  # already in the tokenizer
    trainer = Trainer(
        model=model.model_name_or_path,
        args=config,
        train_dataset=Dataset.from_list(kept),
        processing_class=tokenizer,
        peft_config=get_peft_config(model),
        quantization_config=get_quantization_config(model),
    )
    trainer.shared_prefix = data.shared_prefix
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)

    trainer.save_model(config.output_dir)
    if first:
        facts["log"] = trainer.state.log_history
        folder = Path(config.output_dir)
        (folder / "train_config.yaml").write_text(settings, encoding="utf-8")
        (folder / "train_facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    say(f"saved      {config.output_dir}: weights, tokenizer, chat template, train_config.yaml, train_facts.json")
    say(f"next       python scripts/serve.py --model {config.output_dir}")


if __name__ == "__main__":
    try:
        main(*parse(sys.argv[1:]))
    except ConfigError as error:
        sys.exit(f"train/sft.py: {error}")
