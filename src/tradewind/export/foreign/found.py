"""What a file of somebody else's says, and the workload file that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from tradewind.base.errors import BadFile
from tradewind.base.yamltree import DEEPEST, LARGEST
from tradewind.model import sensitive

_OURS = "TRADEWIND_"


@dataclass(slots=True)
class Found:
    name: str = ""
    command: str = ""
    setup: str = ""
    env: dict[str, str] = field(default_factory=dict)
    image: str = ""
    accelerator: str = ""
    """As written there; "" where it says none."""
    instance_type: str = ""
    """In place of it."""
    count: int = 1
    """Of them in a machine."""
    nodes: int = 1
    cpus: int | None = None
    """At least so many, and so much, in a machine."""
    ram_gb: float | None = None
    disk_gb: float | None = None
    hours: float | None = None
    """The most that it may take there."""
    spot: bool | None = None
    left: list[str] = field(default_factory=list)
    """What could not be carried over, in words."""


def document(found: Found, machines: dict[str, Any]) -> dict[str, Any]:
    """Of a workload, for `commented.text`. `machines`: those that it names, as our catalog calls
    them. How long it takes no such file says, at most when it is stopped."""
    env = {}
    for name, value in found.env.items():
        if name.startswith(_OURS):
            continue  # a plan says them again
        if sensitive.variable(name, value) or (sensitive.is_named(name) and not value):
            found.left.append(f"{name}: it looks like a secret; run.secrets names where it is kept")
        elif not value:
            found.left.append(f"{name}: it has no value there; run.env, or run.secrets")
        else:
            env[name] = value
    named = dict(machines)
    if found.nodes > 1:
        named["nodes"] = found.nodes
    for name, least in (("cpus", found.cpus), ("ram", found.ram_gb), ("disk", found.disk_gb)):
        if least is not None:
            named[name] = least if name == "cpus" else f"{least:g}GB"
    limits: dict[str, Any] = {}
    if found.spot is not None:
        limits["markets"] = ["spot"] if found.spot else ["on_demand"]
    stop = {} if found.hours is None else {"max_duration": _duration(found.hours)}
    return {
        "name": found.name or "imported",
        **named,
        **({"limits": limits} if limits else {}),
        "run": {
            **({"image": found.image} if found.image else {}),
            **({"setup": found.setup} if found.setup else {}),
            "command": found.command,
            **stop,
            **({"env": env} if env else {}),
        },
    }


def _duration(hours: float) -> str:
    whole_ = hours == int(hours)
    return f"{int(hours)}h" if whole_ else f"{max(round(60 * hours), 1)}m"


def tree(text: str, what: str) -> dict[str, Any]:
    """YAML or JSON, of plain values."""
    try:
        _look(text, what)
        value = yaml.safe_load(text)
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
        TypeError,
    ) as error:  # values of its own kinds that are none
        first = str(error).splitlines()[0] if str(error) else "too deep"
        raise BadFile(f"this is no {what}: {first}", hint="it has to be YAML") from None
    if not isinstance(value, dict):
        raise BadFile(f"this is no {what}: it is no table of names", hint="docs/commands/import.md")
    return {str(name): each for name, each in value.items()}


def _look(text: str, what: str) -> None:
    """Before anything is made of it: what a few lines say may be more than a memory holds."""
    if len(text) > LARGEST:
        raise BadFile(f"this is no {what}: it is too large", hint="the file that starts the work")
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            line = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
            raise BadFile(
                f"{line}*{event.anchor} stands for what is elsewhere",
                hint="write it out there",
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise BadFile(
                f"this is no {what}: it is nested deeper than {DEEPEST} levels",
                hint="the file that starts the work",
            )


def rest(value: dict[str, Any], known: tuple[str, ...], where: str = "") -> list[str]:
    """Names that nobody has read."""
    return [f"{where}{name}" for name in value if name not in known]


def words(value: Any) -> str:
    """A script, or a list of its lines."""
    if isinstance(value, list):
        return "\n".join(str(each) for each in value).strip()
    return "" if value is None else str(value).strip()


def table(value: Any) -> dict[str, str]:
    """Variables: a table, or `NAME=VALUE` each."""
    if isinstance(value, dict):
        return {str(k): "" if v is None else str(v) for k, v in value.items()}
    if isinstance(value, list):
        pairs = (str(each).partition("=") for each in value)
        return {name: after for name, _, after in pairs}
    return {}


def whole(value: Any, otherwise: int = 1) -> int:
    try:
        return max(int(str(value)), 1)
    except ValueError:
        return otherwise
