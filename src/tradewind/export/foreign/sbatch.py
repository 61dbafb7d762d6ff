"""A batch script of Slurm's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tradewind.base.errors import BadFile
from tradewind.export.foreign.found import Found, whole

_DIRECTIVE = re.compile(r"#SBATCH\s+(.*)")
_SHORT = {"J": "job-name", "N": "nodes", "t": "time", "G": "gpus", "p": "partition",
          "n": "ntasks", "c": "cpus-per-task", "o": "output", "e": "error",
          "A": "account"}  # fmt: skip
_SILENT = ("output", "error", "open-mode", "ntasks-per-node", "requeue", "signal", "job-name",
           "nodes", "time")  # fmt: skip
"""Read, or done by runs themselves."""
_EXPORT = re.compile(r"export\s+(\w+)=(.*)")
_SRUN = re.compile(r"srun\b((?:\s+--?[\w-]+(?:=\S+)?)*)\s+(.*)")


def read(text: str) -> Found:
    if "#SBATCH" not in text:
        raise BadFile("this is no batch script: it has no line #SBATCH", hint="--from another KIND")
    found = Found()
    given = dict(_directives(text))
    found.name = given.get("job-name", "")
    found.nodes = whole(given.get("nodes", "1").partition("-")[0])
    found.hours = _hours(given.get("time", ""))
    for name in ("gres", "gpus-per-node", "gpus-per-task", "gpus"):
        if name in given:
            _gpus(given.pop(name), found)
            if name == "gpus":
                found.count = max(found.count // found.nodes, 1)
            break
    if "array" in given:
        found.left.append("--array: `tradewind run --sweep NAME=…` makes a run for each value")
        del given["array"]
    found.left += [f"--{name}={value}".rstrip("=") for name, value in given.items()
                   if name not in _SILENT]  # fmt: skip
    _body(text, found)
    return found


def _directives(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = _DIRECTIVE.fullmatch(line.strip())
        if match is None:
            continue
        parts = shlex.split(match[1], comments=True)
        for at, word in enumerate(parts):
            if word.startswith("--"):
                name, sign, value = word[2:].partition("=")
            elif word.startswith("-"):
                name, value, sign = _SHORT.get(word[1:2], word[1:2]), word[2:], word[2:]
            else:
                continue
            following = parts[at + 1] if at + 1 < len(parts) else ""
            if not sign and following and not following.startswith("-"):
                value = following
            yield name, value


def _gpus(text: str, found: Found) -> None:
    """`gpu:a100:4`, `a100:4`, `gpu:4`, `4`."""
    parts = [each for each in text.partition(",")[0].split(":") if each != "gpu"]
    if parts and parts[-1].isdecimal():
        found.count = whole(parts.pop())
    if parts:
        found.accelerator = parts[0]


def _body(text: str, found: Found) -> None:
    setup: list[str] = []
    commands: list[str] = []
    lines = text.replace("\\\n", " ").splitlines()
    for raw in lines:
        line = raw.strip()
        if not line or line.startswith("#") or re.match(r"set\s+-|cd\s", line):
            continue
        if match := _EXPORT.fullmatch(line):
            value = shlex.split(match[2])
            if "$" in match[2] and "'" not in match[2]:
                commands.append(line)
            else:
                found.env[match[1]] = value[0] if value else ""
        elif line.startswith(("module ", "ml ")):
            found.left.append(f"{line}: run.image or run.setup")
        elif re.match(r"(pip|pip3|conda|source|python3? -m pip|uv)\s", line) and not commands:
            setup.append(line)
        elif match := _SRUN.fullmatch(line):
            if match[1].strip():
                found.left.append(f"srun{match[1]}: a run starts its command on each machine")
            commands.append(match[2])
        else:
            commands.append(raw.rstrip())
    found.setup, found.command = "\n".join(setup), "\n".join(commands).strip()
    for each in sorted(set(re.findall(r"\bSLURM_\w+", found.command))):
        found.left.append(f"${each} is not set: docs/jobs.md has what is")


def _hours(text: str) -> float | None:
    """`D-HH:MM:SS`, `D-HH`, `HH:MM:SS`, `MM:SS`, `MM`."""
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", text):
        return None
    days, dash, clock = text.rpartition("-")
    parts = [int(each) for each in clock.split(":")]
    if dash:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, minutes, seconds = 0, parts[0], (parts[1] if len(parts) > 1 else 0)
    return round(int(days or 0) * 24 + hours + minutes / 60 + seconds / 3600, 4) or None
