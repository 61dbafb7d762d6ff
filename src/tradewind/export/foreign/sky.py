"""A task file of SkyPilot."""

from __future__ import annotations

import re
from typing import Any

from tradewind.export.foreign.found import Found, rest, table, tree, whole, words

_KNOWN = ("name", "resources", "num_nodes", "setup", "run", "envs", "workdir", "secrets")
_RESOURCES = (
    "accelerators", "use_spot", "image_id", "instance_type", "cpus", "memory", "disk_size",
)  # fmt: skip
_RANKS = ("SKYPILOT_NODE_RANK", "SKYPILOT_NODE_IPS", "SKYPILOT_NUM_GPUS_PER_NODE",
          "SKYPILOT_NUM_NODES", "SKYPILOT_TASK_ID")  # fmt: skip


def read(text: str) -> Found:
    value = tree(text, "task of SkyPilot")
    found = Found(
        name=str(value.get("name") or ""),
        command=words(value.get("run")),
        setup=words(value.get("setup")),
        env=table(value.get("envs")),
        nodes=whole(value.get("num_nodes", 1)),
    )
    found.left += [f"{name}: no such thing here" for name in rest(value, _KNOWN)]
    for name in table(value.get("secrets")):
        found.left.append(f"secrets.{name}: run.secrets names where it is kept")
    if value.get("workdir") not in (None, "."):
        found.left.append(f"workdir {value['workdir']}: `tradewind run --folder` names it")
    resources = value.get("resources")
    if isinstance(resources, dict):
        _resources(resources, found)
    for each in _RANKS:
        if each in found.command or each in found.setup:
            found.left.append(f"${each} is not set: torchrun is told by itself (docs/jobs.md)")
    return found


def _resources(value: dict[str, Any], found: Found) -> None:
    wanted = value.get("accelerators")
    if isinstance(wanted, list | dict) and len(wanted) > 1:
        found.left.append("resources.accelerators but the first: limits.accelerators has a list")
    if isinstance(wanted, list):
        wanted = wanted[0] if wanted else None
    if isinstance(wanted, dict):
        name, number = next(iter(wanted.items()), ("", 1))
        found.accelerator, found.count = str(name), whole(number)
    elif wanted:
        name, _, number = str(wanted).partition(":")
        found.accelerator, found.count = name, whole(number or 1)
    found.instance_type = str(value.get("instance_type") or "") if not wanted else ""
    cpus = _least(value.get("cpus"))
    found.cpus = None if cpus is None else max(round(cpus), 1)
    found.ram_gb, found.disk_gb = _least(value.get("memory")), _least(value.get("disk_size"))
    if isinstance(value.get("use_spot"), bool):
        found.spot = value["use_spot"]
    image = str(value.get("image_id") or "")
    if image.startswith("docker:"):
        found.image = image.removeprefix("docker:")
    elif image:
        found.left.append(f"resources.image_id {image}: it is no container image")
    found.left += [
        f"resources.{name}: a plan chooses; limits may narrow it"
        for name in rest(value, _RESOURCES)
    ]


def _least(value: Any) -> float | None:
    """`8`, `8+` and `32GB`: at least so much. None where it is told in another way."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*(?:[gG][bB]?)?\+?", str(value).strip())
    return float(found[1]) if found and float(found[1]) > 0 else None
