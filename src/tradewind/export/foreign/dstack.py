"""A task of dstack."""

from __future__ import annotations

import re
from typing import Any

from tradewind.base.errors import BadFile
from tradewind.export.foreign.found import Found, rest, table, tree, whole, words

_KNOWN = ("type", "name", "commands", "env", "image", "resources", "nodes", "spot_policy",
          "max_duration", "python")  # fmt: skip
_UNITS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}


def read(text: str) -> Found:
    value = tree(text, "configuration of dstack")
    if value.get("type") != "task":
        raise BadFile(
            f"a configuration of type {value.get('type')!r} is no work that ends",
            hint="only tasks are read; a service is described by serve (docs/workload.md)",
        )
    found = Found(
        name=str(value.get("name") or ""),
        command=words(value.get("commands")),
        env=table(value.get("env")),
        image=str(value.get("image") or ""),
        nodes=whole(value.get("nodes", 1)),
    )
    spot = value.get("spot_policy")
    found.spot = {"spot": True, "on-demand": False}.get(str(spot))
    found.hours = _hours(value.get("max_duration"))
    if "python" in value:
        found.left.append(f"python {value['python']}: run.image, or run.setup")
    resources = value.get("resources")
    if isinstance(resources, dict):
        _gpu(resources.get("gpu"), found)
        found.left += [
            f"resources.{name}: a plan chooses machines as a whole"
            for name in rest(resources, ("gpu",))
        ]
    found.left += [f"{name}: no such thing here" for name in rest(value, _KNOWN)]
    return found


def _gpu(value: Any, found: Found) -> None:
    """`H100:8`, `80GB:8`, `nvidia:A100:2`, or a table."""
    if isinstance(value, dict):
        name = value.get("name")
        found.accelerator = str(name[0] if isinstance(name, list) and name else name or "")
        found.count = whole(value.get("count", 1))
        found.left += [f"resources.gpu.{e}: not read" for e in rest(value, ("name", "count"))]
        return
    for part in str(value or "").split(":"):
        if re.fullmatch(r"\d+(\.\.\d*)?", part):
            found.count = whole(part.partition(".")[0])
        elif re.fullmatch(r"\d+(\.\d+)?[GT]B.*", part, re.IGNORECASE):
            found.left.append(f"resources.gpu {part}: --accelerator names one with such memory")
        elif part:
            found.accelerator = part.partition(",")[0]  # after its maker, where that is said


def _hours(value: Any) -> float | None:
    match = re.fullmatch(r"(\d+)\s*([smhdw]?)", str(value or "").strip())
    if match is None:
        return None
    return round(int(match[1]) * _UNITS[match[2] or "s"], 4) or None
