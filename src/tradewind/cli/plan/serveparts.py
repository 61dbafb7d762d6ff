"""What every answer about serving begins with: on which machines, and what their memory holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import click


class Placed(Protocol):
    """What is read of an answer, of models that write and of those that do not."""

    @property
    def model(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def accelerator(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def weights(self) -> str: ...
    @property
    def memory_gb(self) -> Mapping[str, float]: ...
    @property
    def capacity_gb(self) -> float: ...


def title(found: Placed) -> None:
    machines = f"{found.count}× {found.accelerator}"
    click.secho(f"{found.model} on {machines}, {found.engine}, {found.weights}", bold=True)


def memory(found: Placed) -> None:
    click.echo(f"\nmemory  {sum(found.memory_gb.values()):.1f} GB of {found.capacity_gb:.1f} GB")
    for item, gigabytes in found.memory_gb.items():
        click.echo(f"  {item:<12} {gigabytes:8.1f} GB")
