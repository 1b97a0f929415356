"""Resolves requirements.txt as one environment for Linux x86_64 and Python 3.11, without installing anything.

    python scripts/check_requirements.py        # about a minute, package metadata only

Says which pins contradict each other when they do. Needs uv.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    if not shutil.which("uv"):
        print("check_requirements: uv is not installed. Try: pip install uv", file=sys.stderr)
        return 2
    start = time.monotonic()
    command = ["uv", "pip", "compile", "requirements.txt", "--python-version", "3.11"]
    command += ["--python-platform", "x86_64-unknown-linux-gnu", "--no-annotate", "--no-header"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(f"requirements.txt does not resolve as one environment:\n{done.stderr.strip()}", file=sys.stderr)
        return 1
    packages = [line for line in done.stdout.splitlines() if "==" in line]
    seconds = time.monotonic() - start
    print(f"requirements.txt resolves as one environment of {len(packages)} packages ({seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
