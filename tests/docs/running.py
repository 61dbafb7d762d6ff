"""A page's commands and its Python, run in an empty folder, as a reader would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs import blocks, scenes
from tests.docs.excuses import excuse
from tradewind.providers.local.provider import LocalProvider

Done = subprocess.CompletedProcess[str]
DAY = "2026-11-15T12:00"
"""Of the built-in catalog: its prices are not stale then."""


def script(page: str) -> str:
    """All commands of `sh` blocks that have no excuse, in their order."""
    found = [b for b in blocks.of(blocks.ROOT / page) if b.language == "sh"]
    wanted = [c for block in found for c in block.commands if not excuse(page, c)]
    return "\n".join(wanted) + "\n" if wanted else ""


def python(page: str) -> str:
    """Its Python blocks one after another, each after its scene."""
    found = [b for b in blocks.of(blocks.ROOT / page) if b.language == "python"]
    scene = scenes.PYTHON.get(page, {})
    parts = [f"REPOSITORY = {str(blocks.ROOT)!r}\n"] if found else []
    for number, block in enumerate(found, 1):
        text = block.text
        for long, short in scenes.SHORTER.items():
            text = text.replace(long, short)
        parts += [scene.get(number, ""), text]
    return "\n".join(parts)


def environment(folder: Path, *, held: bool) -> dict[str, str]:
    """The clock is held at the catalog's day, but not where something runs: it must go on there."""
    found = os.environ | {
        "TRADEWIND_HOME": str(folder / "home"),
        "REPOSITORY": str(blocks.ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(blocks.ROOT / "src"), str(folder)]),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
    }
    found.pop("TRADEWIND_NOW", None)
    found.pop("TRADEWIND_STORE", None)
    return found | ({"TRADEWIND_NOW": DAY} if held else {})


def prepared(folder: Path, *, held: bool) -> None:
    (folder / "home").mkdir()
    (folder / "examples").symlink_to(blocks.ROOT / "examples")
    if not held:
        (folder / "home" / "account.yaml").write_text(scenes.ACCOUNT)


def run_script(page: str, folder: Path) -> Done:
    text = scenes.SHELL.get(page, "") + script(page) + scenes.AFTER.get(page, "")
    held = "tradewind run" not in text
    prepared(folder, held=held)
    place = folder
    if page in scenes.COPIED:
        place = shutil.copytree(blocks.ROOT / scenes.COPIED[page], folder / "copied")
    try:
        return _run(["sh", "-euc", text], place, environment(folder, held=held))
    finally:
        end(folder)


def run_python(page: str, folder: Path) -> Done:
    prepared(folder, held=True)
    (folder / "page.py").write_text(python(page))
    ranks = scenes.RANKS.get(page)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [sys.executable, *(launcher if ranks else []), "page.py"]
    return _run(command, folder, environment(folder, held=False))


def end(folder: Path) -> None:
    """Machines of runs that were left going on."""
    provider = LocalProvider(folder / "home", "memory://")
    provider.terminate([m.machine_id for m in provider.list_machines().machines])


def _run(command: list[str], folder: Path, env: dict[str, str]) -> Done:
    return subprocess.run(
        command,
        cwd=folder,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=600,
        check=False,
    )
