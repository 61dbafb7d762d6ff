"""What shellcheck says of a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def linted(script: str, tmp_path: Path) -> str:
    (tmp_path / "script.sh").write_text(script)
    done = subprocess.run(
        [BIN / "shellcheck", "--color=never", tmp_path / "script.sh"],
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr
