"""Ranks as real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def run(*commands: list[str], timeout_s: float = 240) -> list[str]:
    """Modules of ours with arguments, all at once; what each said, if all went well."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))}
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
            cwd=ROOT,
        )
        for command in commands
    ]
    try:
        said = [process.communicate(timeout=timeout_s)[0] for process in begun]
    finally:
        for process in begun:
            process.kill()
            process.wait()
    for process, words in zip(begun, said, strict=True):
        assert process.returncode == 0, "\n".join(said)[-6000:] + words[-2000:]
    return said
