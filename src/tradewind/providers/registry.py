"""The clouds there are: one line each. A cloud's folder is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue

if TYPE_CHECKING:
    from tradewind.providers.cloud import Aboard, Cloud, Rentable

LOCAL = "local"
"""This computer: it needs no setup, and nothing is paid for it."""
CLOUDS = {
    LOCAL: "local",
    "aws": "aws",
    "gcp": "gcp",
    "lambda": "lambda_cloud",
    "kubernetes": "kubernetes",
    "ssh": "ssh",
    "slurm": "slurm",
}
"""By name, the folder beside this file."""
DESCRIBED = {"azure": "azure"}
"""Clouds that others' tools are told of (infrastructure.py), and nothing is rented from by ours."""
RENTED = tuple(name for name in CLOUDS if name != LOCAL)


def chosen(texts: Sequence[str]) -> tuple[str, ...]:
    """Names as users write them, with commas, in capitals or twice: each once, and known. None
    where nothing was asked for."""
    names = tuple(
        dict.fromkeys(
            name.strip().lower() for text in texts for name in text.split(",") if name.strip()
        )
    )
    if texts and not names:
        raise InvalidValue("--on names no cloud", hint=f"--on {' or '.join(CLOUDS)}")
    for name in names:
        _check(name)
    return names


def _check(name: str) -> None:
    if name not in CLOUDS:
        close = get_close_matches(name, CLOUDS, n=1)
        raise InvalidValue(
            f"machines of {name} cannot be rented from here yet",
            hint=(f"did you mean {close[0]}? " if close else "")
            + f"--on {' or '.join(RENTED)}, or --local: on this computer, priced as its machines"
            " are",
        )


def cloud(name: str) -> Cloud:
    _check(name)
    found: Cloud = import_module(f"{__package__}.{CLOUDS[name]}.cloud").CLOUD
    return found


def rentable(name: str) -> Rentable:
    if name == LOCAL:
        raise InvalidValue("this computer is not rented", hint="--local uses it")
    found: Rentable = cloud(name)  # type: ignore[assignment]  # all of RENTED are
    return found


def of_machine(machine_id: str) -> Cloud:
    """Ids of machines begin with their cloud's name."""
    return cloud(machine_id.partition("-")[0])


def aboard(name: str) -> Aboard:
    """The cloud's part on its machines, which is all that they import of it."""
    if name not in CLOUDS:
        raise InvalidValue(f"unknown how {name!r} gives interruption notices")
    found: Aboard = import_module(f"{__package__}.{CLOUDS[name]}.aboard").ABOARD
    return found
