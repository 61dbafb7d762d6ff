"""Machines that an account has beside what is sold to everybody: nodes of a cluster of its own, a
queue of its own. The catalog knows them not, so the cloud that has them tells (`Offers` in
cloud.py); what they cost, and which accelerator of ours theirs is, the catalog is asked
(api/offered.py): clouds know nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class Like(Struct, frozen=True, kw_only=True):
    """A type of machine of the catalog's, whose price it has."""

    provider: str = ""
    """"": whoever sells the type, where only one does."""
    region: str = ""
    instance_type: str = ""
    share: float = 1.0
    """So much of one of them it is."""


class Offered(Struct, frozen=True, kw_only=True):
    """One kind of machine in one place."""

    region: str
    instance_type: str
    """As ways will name it: unique in the region, on its market."""
    accelerator: str
    """As its maker or its cloud spells it; "": as the type that it is like has."""
    count: float
    """Accelerators of a machine; less than one: a part of one."""
    memory_gb: float | None = None
    """Of one accelerator, where that is told."""
    market: str = "on_demand"
    machines: int
    """That there may be at once, whoever uses them now, and those that could be added."""
    free: int | None = None
    """Of them, free now; None: not known."""
    vcpus: float | None = None
    ram_gb: float | None = None
    network_gbps: float | None = None
    """Of a machine, to others; None: as the type that it is like has, else what is assumed."""
    like: Like = Like()
    usd_hour: float | None = None
    """What one costs, where whoever set it up has told; the account file is asked first."""
    usd_words: str = ""
    """How that was reckoned."""
    fee_share: float = 0.0
    """Of the fee that whoever runs the place takes for it, what falls on one such machine."""
    sure: str = ""
    """How sure it is that it can be had, in words."""


class Offering(Struct, frozen=True, kw_only=True):
    offers: tuple[Offered, ...]
    warnings: tuple[str, ...] = ()
    """What could not be learned."""


class Type(Struct, frozen=True, kw_only=True):
    """Of machines, as the catalog knows it."""

    name: str
    accelerator: str
    count: float


class Types(Protocol):
    """What the catalog knows of types of machines."""

    def __call__(self, provider: str) -> Mapping[str, Type]:
        """By name, those that a provider has with accelerators."""
