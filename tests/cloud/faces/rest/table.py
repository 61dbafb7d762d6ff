"""What a table says of a cloud. Texts with `$` are holes (shapes.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cloud.face import Billing


@dataclass(frozen=True)
class Field:
    """Where a request has it (`a.b`: b inside a), and what it may be."""

    at: str
    sort: type = str
    needed: bool = False
    default: Any = None
    most: int | None = None
    """Characters, or items."""


@dataclass(frozen=True)
class Route:
    """`action` is the word by which tests set faults. `takes`: our names of what is asked for, and
    where they are in the body, or else in the query; braces in `path` are taken by themselves."""

    action: str
    method: str
    path: str
    does: str
    """launch, end, rename, machines, machine, kinds; make, list, remove, replace of a shelf."""
    gives: Any
    takes: Mapping[str, Field] = field(default_factory=dict)
    of: str = ""
    """The shelf."""
    pages: str = ""
    """The list of facts that is told a page at a time."""
    status: int = 200


@dataclass(frozen=True)
class Error:
    status: int
    code: str
    message: str
    more: str = ""
    """The shape's `$more`."""


@dataclass(frozen=True)
class Paging:
    """Names in the query. The next page's token is the fact `next`."""

    size: str
    token: str
    most: int = 100


@dataclass(frozen=True)
class Kind:
    cpus: int
    gpus: int
    usd_hour: float
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shelf:
    """Things with names that machines refer to: keys, file systems, rules."""

    asked_as: str = ""
    """By this argument of a launch, a list of names."""
    held: bool = False
    """None is removed while a machine refers to it."""
    regional: bool = False
    costs: bool = False
    """What is left of them is counted by `left`."""


@dataclass(frozen=True, kw_only=True)
class Table:
    name: str
    auth: tuple[tuple[str, str], ...] = (("Authorization", "bearer"),)
    """Headers, and how a key is in them: bearer, basic (as user, or as it is), or plain."""
    routes: tuple[Route, ...]
    states: Mapping[str, str]
    """Their words for world.STATES."""
    kinds: Mapping[str, Kind]
    regions: Mapping[str, str]
    """And what each is called."""
    errors: Mapping[str, Error]
    """By the sort of a Refusal."""
    error_shape: Any
    shelves: Mapping[str, Shelf] = field(default_factory=dict)
    paging: Paging | None = None
    pace_s: Mapping[str, float] = field(default_factory=dict)
    """As documented. A test turns it on: `cloud.dials(pace_s=…)`."""
    ids: str = "{:032x}"
    unique_names: bool = False
    lists_ended: bool = False
    user_data: str = "plain"
    """Or base64."""
    after_shutdown: str = "ended"
    notice_s: float = 0.0
    billing: Billing = field(default_factory=Billing)
    quotas: Mapping[str, str] = field(default_factory=dict)
    """The first is counted in machines."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Paths of its metadata service, and the fact that each tells."""
