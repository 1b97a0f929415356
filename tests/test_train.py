"""Training on a tiny random model: what is trained, that the shared prefix is exact, what is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import yaml
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from trl import SFTConfig, SFTTrainer

from hypertool.errors import ConfigError
from hypertool.prompts import BLOCK_FUNCTION, CHAT_TEMPLATE, completion_text, render_chat

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def sft() -> ModuleType:
    """train/sft.py, loaded by path: `train` is a folder of scripts, not a package."""
    spec = importlib.util.spec_from_file_location("sft", ROOT / "train/sft.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sft"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def example_row(number: int) -> dict[str, Any]:
    """An SFT row of two blocks, one after an error; rows differ in names and length."""
    name = "amber" * (number + 1)

    def turn(thought: str, code: str) -> dict[str, Any]:
        function = {"name": "hypertool", "arguments": json.dumps({"code": code})}
        return {
            "role": "assistant",
            "content": thought,
            "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
        }

    return {
        "task_id": f"task-{number}",
        "arm": "hypertool",
        "messages": [
            {"role": "system", "content": "You solve a task with tools. Send Python blocks to hypertool. " * 4},
            {"role": "user", "content": f'How long is "{name}"? {"Please. " * number}'},
            turn("I try.", f'name = "{name}"\nresult = missing(name)'),
            {"role": "tool", "content": "Error: NameError: missing is not defined", "tool_call_id": "call_0"},
            turn("", f'name = "{name}"\nresult = len(name)'),
            {"role": "tool", "content": f'{{"status": true, "result": {len(name)}}}', "tool_call_id": "call_0"},
            {"role": "assistant", "content": f'So it is.\n<answer>{{"length": {len(name)}}}</answer>'},
        ],
        "tools": json.dumps([BLOCK_FUNCTION]),
    }


ROWS = [example_row(number) for number in range(4)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny random Qwen3, a tokenizer trained on the rows, and the rows."""
    folder = tmp_path_factory.mktemp("tiny")
    texts = [render_chat(row["messages"], json.loads(row["tools"])) for row in ROWS]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.save_pretrained(folder)
    tiny_model(Qwen3ForCausalLM, Qwen3Config, len(tokenizer)).save_pretrained(folder)
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return folder


def tiny_model(model: type, config: type, vocabulary: int) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 32}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    ends = {"eos_token_id": 2, "pad_token_id": 0, "bos_token_id": None}
    return model(config(vocab_size=vocabulary, max_position_embeddings=2048, **sizes, **heads, **ends))


@pytest.fixture
def tokenizer(sft: ModuleType, tiny: Path) -> Any:
    return sft.load_tokenizer(str(tiny), None, dry_run=False)


def test_trained_text_is_exactly_the_assistant_turns(sft: ModuleType, tokenizer: Any) -> None:
    for row in ROWS:
        encoded = sft.tokenize(row, tokenizer, True)
        shown = sft.show(encoded, tokenizer)
        turns = [message for message in row["messages"] if message["role"] == "assistant"]
        assert [part.split("⟧")[0] for part in shown.split("⟦")[1:]] == [completion_text(turn) for turn in turns]
        assert all(completion_text(turn).endswith("<|im_end|>") for turn in turns)
        assert shown.replace("⟦", "").replace("⟧", "") == render_chat(row["messages"], json.loads(row["tools"]))
    everything = sft.tokenize(ROWS[0], tokenizer, False)
    assert everything["labels"] == everything["input_ids"]


@pytest.mark.parametrize(
    ("model_type", "config_type"), [(Qwen3ForCausalLM, Qwen3Config), (LlamaForCausalLM, LlamaConfig)]
)
def test_shared_prefix_gives_the_same_loss_and_gradients(
    sft: ModuleType, tokenizer: Any, tmp_path: Path, model_type: type, config_type: type
) -> None:
    rows = Dataset.from_list([sft.tokenize(row, tokenizer, True) for row in ROWS[:3]])
    results = []
    for trainer_type in (SFTTrainer, sft.Trainer):
        config = SFTConfig(
            output_dir=str(tmp_path), use_cpu=True, bf16=False, activation_checkpointing=False, report_to="none"
        )
        config.per_device_train_batch_size = 3
        model = tiny_model(model_type, config_type, len(tokenizer)).train()
        trainer = trainer_type(model=model, args=config, train_dataset=rows, processing_class=tokenizer)
        trainer.shared_prefix = True  # means something to ours only
        batch = next(iter(trainer.get_train_dataloader()))
        assert sft.prefix_length(batch["input_ids"], batch["labels"]) > 50
        loss = trainer.compute_loss(model, batch, num_items_in_batch=torch.tensor(77))
        loss.backward()
        results.append((loss.detach(), {name: p.grad for name, p in model.named_parameters()}))
    (plain, plain_grads), (shared, shared_grads) = results
    torch.testing.assert_close(shared, plain, rtol=1e-5, atol=1e-6)
    for name, gradient in plain_grads.items():
        assert gradient.abs().max() > 0, name
        torch.testing.assert_close(shared_grads[name], gradient, rtol=1e-3, atol=1e-5, msg=name)


def test_prefix_ends_before_the_first_label(sft: ModuleType) -> None:
    same = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 8]])
    labels = torch.tensor([[-100, -100, 7, 8], [-100, -100, 7, 8]])
    assert sft.prefix_length(same, labels) == 1  # token 1 predicts the label at 2, so it must be run for its logits
    differ = torch.tensor([[5, 6, 7, 8], [4, 6, 7, 8]])
    assert sft.prefix_length(differ, labels) == 0
    assert sft.prefix_length(same, torch.full_like(same, -100)) == 3


def test_interleaved_batches_hold_every_kind(sft: ModuleType) -> None:
    rows = [{"task_id": f"world-{kind}-train-{number:04d}"} for kind in "abc" for number in range(5)]
    dealt = sft.interleave(rows[:-1], 0)
    assert sorted(row["task_id"] for row in dealt) == sorted(row["task_id"] for row in rows[:-1])
    assert all({row["task_id"].split("-")[1] for row in dealt[at : at + 3]} == set("abc") for at in (0, 3, 6, 9))
    assert dealt == sft.interleave(rows[:-1], 0)
    assert dealt != sft.interleave(rows[:-1], 1)


def dry_run(sft: ModuleType, *arguments: str) -> None:
    sft.main(*sft.parse([*arguments, "--dry-run"]))


def test_dry_run_shows_config_counts_and_a_row(
    sft: ModuleType, tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    rows = ["--model_name_or_path", str(tiny), "--dataset", str(tiny / "train.jsonl")]
    dry_run(sft, "--config=configs/train/demo.yaml", *rows)
    shown = capsys.readouterr().out
    assert "rows       4 kept, 0 dropped" in shown
    assert "learning_rate: 0.001" in shown
    assert "⟦I try." in shown
    lengths = [len(sft.tokenize(row, sft.load_tokenizer(str(tiny), None, False), True)["input_ids"]) for row in ROWS]
    dry_run(sft, "--config=configs/train/demo.yaml", *rows, "--max_length", str(max(lengths) - 1))
    assert "3 kept, 1 dropped for more than" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no row to train on"):
        dry_run(sft, "--config=configs/train/demo.yaml", *rows, "--max_length", "20")


@pytest.mark.parametrize(("name", "processes"), [("sft_qwen3_8b", 8), ("sft_qwen3_32b", 32)])
def test_paper_configs(
    sft: ModuleType,
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    processes: int,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sft, "QWEN3_TOKENIZER", tiny)
    arguments = [f"--config=configs/train/{name}.yaml", "--dataset", str(tiny / "train.jsonl")]
    dry_run(sft, *arguments)
    shown = capsys.readouterr().out
    assert "stands in for that of Qwen/Qwen3-" in shown
    assert "4 kept" in shown
    _, keys, data, config, model = sft.parse([*arguments, "--dry-run"])
    assert (config.learning_rate, config.adam_beta1, config.adam_beta2, config.weight_decay) == (5e-5, 0.9, 0.95, 0.1)
    assert (config.max_length, config.num_train_epochs, config.warmup_steps) == (65536, 3, 0.1)
    assert (config.lr_scheduler_type, config.lr_scheduler_kwargs) == ("cosine_with_min_lr", {"min_lr": 1e-6})
    sft.check_batch(data, config, processes)
    with pytest.raises(ConfigError, match="global_batch_size is 64, but"):
        sft.check_batch(data, config, processes // 2)
    assert yaml.safe_load(sft.resolved(keys, data, config, model))["global_batch_size"] == 64


def test_refusals(sft: ModuleType, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = tmp_path / "typo.yaml"
    config.write_text("output_dir: x\nlearning_rat: 1.0\n")
    with pytest.raises(ConfigError, match=r"typo.yaml: unknown key 'learning_rat'. Did you mean 'learning_rate'"):
        sft.parse(["--config", str(config)])
    with pytest.raises(ConfigError, match=r"command line: unknown key 'max_step'. Did you mean 'max_steps'"):
        sft.parse(["--config", "configs/train/demo.yaml", "--max-step=3"])
    with pytest.raises(ConfigError, match="no such config file"):
        sft.parse(["--config", "configs/train/dmo.yaml"])
    with pytest.raises(ConfigError, match="`make data` makes it"):
        sft.read_rows(["data/nowhere.jsonl"])
    with pytest.raises(ConfigError, match="fetch_models"):
        sft.load_tokenizer("models/nowhere", None, False)
    with pytest.raises(ConfigError, match=r"no tokenizer_config.json there"):
        sft.load_tokenizer(str(tmp_path), None, False)
    silent = {**ROWS[0], "messages": ROWS[0]["messages"][:2]}
    with pytest.raises(ConfigError, match="task 'task-0': no token would be trained"):
        sft.tokenize(silent, tokenizer, True)
    _, _, data, demo, _ = sft.parse(["--config", "configs/train/demo.yaml"])
    with pytest.raises(ConfigError, match="one process"):
        sft.check_batch(data, demo, 2)
    broken = tmp_path / "rows.jsonl"
    broken.write_text('{"task_id": "a", "messages": []}\n')
    with pytest.raises(ConfigError, match=r"rows.jsonl:1: the row has no tools"):
        sft.read_rows([str(broken)])


@pytest.mark.slow
def test_the_printed_command_trains_and_saves(sft: ModuleType, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "checkpoint"
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", "configs/accelerate/cpu.yaml"]
    command += ["train/sft.py", "--config", "configs/train/smoke.yaml", "--model_name_or_path", str(tiny)]
    command += ["--dataset", str(tiny / "train.jsonl"), "--output_dir", str(out)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WANDB")}
    environment |= {"HOME": str(tmp_path)}  # no ~/.netrc: no key, so W&B must choose offline by itself
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "W&B offline" in done.stdout
    assert list((out / "wandb").glob("offline-run-*"))

    before, after = AutoModelForCausalLM.from_pretrained(tiny), AutoModelForCausalLM.from_pretrained(out)
    assert not torch.equal(before.lm_head.weight, after.lm_head.weight)
    saved = AutoTokenizer.from_pretrained(out)
    assert saved.chat_template == CHAT_TEMPLATE.read_text()
    assert saved.eos_token == "<|im_end|>"
    facts = json.loads((out / "train_facts.json").read_text())
    assert facts["rows"] == 4
    assert len(facts["data_sha256"]) == 12
    steps = [entry for entry in facts["log"] if "loss" in entry]
    assert [entry["step"] for entry in steps] == [1, 2]
    assert steps[-1]["trained_tokens"] == facts["trained_tokens"]  # two steps of two rows are all four rows
    _, _, data, config, _ = sft.parse(["--config", str(out / "train_config.yaml")])
    assert (data.shared_prefix, config.max_steps, config.output_dir) == (True, 2, str(out))
