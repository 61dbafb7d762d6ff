"""What `tradewind run` takes in place of a file, or over one: machines, limits and the job. Each is
the field of the workload file that has its name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tradewind.base.errors import BadWorkload, InvalidValue, NoAccess

if TYPE_CHECKING:
    from tradewind.model import Workload
    from tradewind.model.run import Spec

_MACHINES = ("gpus", "type", "cpus", "ram", "disk")
_FIELDS = {name: name for name in (*_MACHINES, "name")} | {
    "nodes": "nodes",
    "deadline": "limits.deadline",
    "budget": "limits.budget",
    "market": "limits.markets",
    "image": "run.image",
    "retries": "run.retries",
    "idle": "run.idle",
    "max_duration": "run.max_duration",
    "command": "run.command",
}
_OPTIONS = {field: f"--{name.replace('_', '-')}" for name, field in _FIELDS.items()}
_SUFFIXES = (".yaml", ".yml", ".json")


class Asked(NamedTuple):
    what: Workload | str
    """The path of a saved plan is left as it is."""
    folder: Path
    """What is sent with the job."""


def of_the_job(command: Callable[..., Any]) -> Callable[..., Any]:
    """In the order in which they are shown."""
    many = " Repeatable."
    for name, metavar, words in reversed(
        (
            ("gpus", "NAME[:N]", "Exactly these GPUs in each machine: H100:8, 4xA100-80GB, L4."),
            ("type", "TYPE", "Exactly this instance type, e.g. p5.48xlarge."),
            ("cpus", "N", "At least so many vCPUs in each machine."),
            ("ram", "SIZE", "At least so much memory in each, e.g. 32GB."),
            ("disk", "SIZE", "At least so much disk for each, e.g. 200GB."),
            ("deadline", "TIME", "Done in 48h, or by 2026-12-01T08:00+01:00."),
            ("budget", "MONEY", "Maximum cost, e.g. '$200'."),
            ("market", "NAME", f"Only spot, on-demand or reserved. Default: any.{many}"),
            ("env", "NAME[=VALUE]", f"Variable of the job; NAME alone: its value here.{many}"),
            ("env-file", "FILE", f"The same from lines of a file.{many}"),
            ("name", "NAME", "What the run is called. Default: the file's, or the command's."),
            ("retries", "N", "Retries of a job that fails by itself. Default: 2."),
            ("image", "IMAGE", "Container image, on clouds whose machines are containers."),
            ("idle", "TIME", "A job that does nothing for so long is idle. Default: 30m."),
            ("max-duration", "TIME", "Stop machines that were up so long in all, e.g. 12h."),
        )
    ):
        plain = name.replace("-", "_")
        several = plain in ("market", "env", "env_file")
        option = click.option(f"--{name}", plain, metavar=metavar, help=words, multiple=several)
        command = option(command)
    return command


def asked(words: Sequence[str], nodes: int | None, given: Mapping[str, Any], local: bool) -> Asked:
    """Of what was typed: a file with options over it, or a command on machines that are named."""
    flags: dict[str, str | list[str]] = {
        _FIELDS[name]: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if name in _FIELDS and value
    }
    if "limits.markets" in flags:
        flags["limits.markets"] = [m for each in flags["limits.markets"] for m in each.split(",")]
    variables = _variables(given["env"], given["env_file"])
    named = any(given[name] for name in _MACHINES)
    if _is_file(words, named):
        return _of_file(words[0], nodes, flags, variables, local)
    text = words[0] if len(words) == 1 else _joined(words)
    if not named:
        raise InvalidValue(
            f"on which machines? There is no file {words[0]}"
            + (", so it is a command" if " " in text else ""),
            hint="--gpus H100:8 (or --type, or --cpus 4) names them: tradewind run --gpus L4"
            " 'python train.py'; a workload file says it itself",
        )
    flags.setdefault("name", _name_of(text))
    flags["run.command"] = text
    if nodes is not None:
        flags["nodes"] = str(nodes)
    return Asked(_with(_read("{}", "options", "", flags), variables), Path.cwd())


def _is_file(words: Sequence[str], named: bool) -> bool:
    if len(words) != 1 or any(c.isspace() for c in words[0]):
        return len(words) == 1 and Path(words[0]).is_file()
    looks = words[0].endswith(_SUFFIXES)
    return looks or not named or (Path(words[0]).is_file() and not os.access(words[0], os.X_OK))


def _joined(words: Sequence[str]) -> str:
    import shlex

    return shlex.join(words)


def _of_file(
    file: str,
    nodes: int | None,
    flags: dict[str, str | list[str]],
    variables: Mapping[str, str],
    local: bool,
) -> Asked:
    from tradewind.api import submit

    path = Path(file)
    folder = path.absolute().parent
    text = submit.text_of(path)
    if text.lstrip().startswith("{"):
        if flags or variables:
            option = _OPTIONS.get(next(iter(flags), ""), "--env")
            raise InvalidValue(
                f"{option}: {file} is a saved plan, and carried out as it is",
                hint="plan again, or run the workload file with it",
            )
        return Asked(file, folder)
    work = _with(_read(text, file, _below(path), flags), variables)
    if nodes is not None and work.machines is not None:
        work = replace(work, machines=replace(work.machines, nodes=nodes))
    elif nodes is not None and not local:
        raise click.UsageError(
            "--nodes goes with --local, or with --gpus, --type or --cpus: else the plan chooses how"
            " many machines (limits.max_nodes)"
        )
    return Asked(work, folder)


def _below(path: Path) -> str:
    return "" if path.parent == Path() else str(path.parent)


def _read(text: str, origin: str, folder: str, flags: Mapping[str, str | list[str]]) -> Workload:
    from tradewind import catalog as catalogs
    from tradewind import workload
    from tradewind.base import clock
    from tradewind.workload import reader

    known = workload.known_names(catalogs.load())
    try:
        return reader.read(text, origin, now=clock.now(), known=known, folder=folder, flags=flags)
    except BadWorkload as error:
        raise _in_options(error, origin) from None


def _in_options(error: BadWorkload, origin: str) -> BadWorkload:
    """What is wrong with an option is told by the option's name; it has no line."""
    lines = []
    for line, text in error.problems:
        path, _, rest = text.partition(": ")
        option = None if line else _OPTIONS.get(path.partition("[")[0])
        where = f"{origin} line {line}: " if line else ""
        lines.append(f"{option}: {rest}" if option else where + text)
    hint = error.hint if any(line for line, _ in error.problems) else "see `tradewind run --help`"
    text = "\n".join(dict.fromkeys(lines)) or error.message
    return BadWorkload(text, hint=hint, problems=error.problems)


def _with(work: Workload, variables: Mapping[str, str]) -> Workload:
    if not variables:
        return work
    if work.run is None:
        raise InvalidValue(f"--env: workload {work.name} says nothing about what to run")
    return replace(work, run=replace(work.run, env={**work.run.env, **variables}))


def _variables(given: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """Those of files first, so that an option stands over them."""
    found: dict[str, str] = {}
    for file in files:
        for number, line in enumerate(_lines(file), start=1):
            plain = line.strip().removeprefix("export ")
            if plain and not plain.startswith("#"):
                found |= _variable(plain, f"{file} line {number}", quoted=True)
    for text in given:
        found |= _variable(text, "--env")
    return found


def _lines(file: str) -> list[str]:
    try:
        return Path(file).expanduser().read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        words = getattr(error, "strerror", None) or error
        raise NoAccess(f"--env-file {file} cannot be read: {words}") from None


def _variable(text: str, where: str, *, quoted: bool = False) -> dict[str, str]:
    name, sign, value = text.partition("=")
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidValue(f"{where}: a variable is NAME=VALUE")
    if not sign:
        if name not in os.environ:
            raise InvalidValue(
                f"{where}: {name} has no value, and there is no such variable here",
                hint=f"{name}=VALUE",
            )
        return {name: os.environ[name]}
    if quoted:
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
    return {name: value}


def _name_of(command: str) -> str:
    """`train` of `torchrun --nproc-per-node 8 train.py`: a script's name, else the first word's."""
    words = command.split()
    scripts = [word for word in words if word.endswith((".py", ".sh"))]
    chosen = Path((scripts or words or ["run"])[0]).stem
    plain = re.sub(r"[^a-z0-9]+", "-", chosen.lower()).strip("-")[:40].strip("-")
    return plain or "run"


def stops(spec: Spec) -> str:
    """When the machines of a job end of which nobody knows how long it takes, and what they cost
    by then at most: said before any money is spent."""
    from tradewind.base.units import format_duration, format_money

    words = []
    if spec.idle_stop and spec.idle_s:
        idle = format_duration(spec.idle_s, parts=2)
        words.append(f"when the job has made no step and used nothing for {idle} (--idle)")
    if spec.max_duration_s:
        up = format_duration(spec.max_duration_s, parts=2)
        words.append(f"after {up} of machine time in any case (--max-duration)")
        dearest = max(way.price_all for way in spec.ways)
        most = dearest * spec.max_duration_s // 3600
        if spec.budget is not None and spec.budget <= most:
            words.append(f"before it costs more than {format_money(spec.budget, digits=2)}")
        else:
            words[-1] += f": {format_money(most, digits=2)} at most"
    return "; ".join(words)


def ends(spec: Spec) -> str:
    """The same in a line of its own; empty where the plan says how long it takes."""
    return f"nobody has said how long it takes; stops {stops(spec)}" if spec.untold else ""
