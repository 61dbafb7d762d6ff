"""Runs the commands shown in the documentation and writes their real output below them.

    python tools/record_docs.py [FILE.md ...]      all of README.md and docs/ by default

A ```console block holds lines `$ command`; what stands below each is replaced. Commands run in a
folder that holds nothing but `examples`, with an empty TRADEWIND_HOME, 100 columns wide, one after
another, on the day that the built-in catalog was made, so that the same commands print the same.
Tables of fields, between
`<!-- fields: train -->` and `<!-- end -->`, are made from the description that the reader uses, and
so is docs/workload.schema.json; the list of docs/commands/README.md is the command line's own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
WIDTH = "100"
DAY = "2026-11-15T12:00"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[tuple[str, str]]:
    """Each `$ command` of the page with the output recorded below it."""
    found = []
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {
        "TRADEWIND_HOME": str(folder / "home"),
        "TRADEWIND_NOW": DAY,
        "COLUMNS": WIDTH,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=env,
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def shown(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """What a page shows of it: no trailing blanks, no name of a temporary folder."""
    lines = done.stdout.replace(str(folder), "~").splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


def with_commands(text: str) -> str:
    """The list of commands, between `<!-- commands -->` and `<!-- end -->`, made anew."""
    from tradewind.cli import app

    rows = "".join(f"| [{name}]({name}.md) | {words} |\n" for name, words in app.COMMANDS.items())
    table = f"<!-- commands -->\n| command | what it does |\n|---|---|\n{rows}<!-- end -->"
    return re.sub(r"<!-- commands -->.*?<!-- end -->", lambda _: table, text, flags=re.DOTALL)


def record(page: Path) -> None:
    def renewed(match: re.Match[str]) -> str:
        text = "```console\n"
        for line in re.findall(r"^\$ .*$", match[1], flags=re.MULTILINE):
            text += line + "\n" + shown(run(line[2:], Path(folder)), Path(folder))
        return text + "```"

    from tradewind.workload.page import renewed as with_tables

    with tempfile.TemporaryDirectory() as folder:
        text = with_commands(with_tables(page.read_text()))
        page.write_text(BLOCK.sub(renewed, text))


if __name__ == "__main__":
    from tradewind.workload import schema

    (ROOT / "docs" / "workload.schema.json").write_text(schema.text())
    for name in map(Path, sys.argv[1:]) if sys.argv[1:] else pages():
        record(name)
