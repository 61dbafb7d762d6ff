"""What the machines of a plan need at a cloud, as plain data: the one description, which is written
in Terraform's language or as a program. Whoever writes it knows no cloud, and a cloud's folder (its
`infrastructure.py`) no language.

Names are those of Terraform's providers, which Pulumi's are made from. In `fields` a dict is a
block, a list of dicts are blocks that may be there often, and `Map` is an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module, util
from typing import Any, Protocol

from msgspec import Struct, field

from tradewind.model.secrets import Reference
from tradewind.providers import registry


class Var(Struct, frozen=True):
    """The value of a variable."""

    name: str


class Of(Struct, frozen=True):
    """What a thing has once it is made: `Of("aws_vpc.job", "id")`, `Of("data.KIND.NAME", "id")`."""

    address: str
    attribute: str


class Filled(Struct, frozen=True):
    """A text with expressions in the place of each `%s`."""

    pattern: str
    parts: tuple[Any, ...]


class Underscored(Struct, frozen=True):
    """A name where signs of subtraction may not be."""

    part: Any


class Json(Struct, frozen=True):
    value: Any


class Map(Struct, frozen=True):
    values: Mapping[str, Any]


class Script(Struct, frozen=True):
    """The file of that name beside it, begun with variables for it. `encoded`: in base64."""

    variables: Mapping[str, Any]
    encoded: bool = False


class FileHash(Struct, frozen=True):
    path: Any


SCRIPT = "start.sh"


class Variable(Struct, frozen=True, kw_only=True):
    name: str
    words: str
    kind: str = "string"
    """string or number."""
    default: str | int | None = None
    """None: whoever applies it says it."""


class Thing(Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    fields: Mapping[str, Any]
    why: str = ""
    data: bool = False
    """Looked up, not made."""
    new_first: bool = False
    """Where it has to be another one: that is made before this one goes, which is in use."""

    leaves: tuple[str, ...] = ()
    """Fields that somebody else changes later: `scaling_config.desired_size`, within a block."""
    needs: tuple[str, ...] = ()
    """Addresses of what has to be there before, and is not named in its fields."""

    @property
    def address(self) -> str:
        return f"{'data.' if self.data else ''}{self.kind}.{self.name}"


class Infrastructure(Struct, frozen=True, kw_only=True):
    provider: str
    source: str
    version: str
    settings: Mapping[str, Any]
    """Of the provider."""
    variables: tuple[Variable, ...]
    things: tuple[Thing, ...]
    outputs: Mapping[str, tuple[Any, str]]
    """Expressions, each with what it is."""
    classes: Mapping[str, str]
    """What Pulumi calls the kinds of things: `ec2.Vpc`."""
    pulumi: tuple[str, str]
    """Its package for that cloud, and the version that has these."""
    functions: str = ""
    """Of shell, that the script is written with (export/start.py); "": there is no script."""
    notes: tuple[str, ...] = ()


class Wanted(Struct, frozen=True, kw_only=True):
    """What a plan asks of a cloud, besides its script."""

    name: str
    region: str
    zone: str
    instance_type: str
    chip: str
    """Accelerator, with its maker."""
    vendor: str
    arm: bool
    nodes: int
    spot: bool
    disk_gb: int
    disk_why: str
    budget: int
    """In dollars."""
    budget_why: str
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables, and where their values are."""


class Pool(Struct, frozen=True, kw_only=True):
    """Nodes of a cluster that are alike."""

    key: str
    """Among those of a plan: `spot`, `on_demand_2`."""
    name: str
    instance_type: str
    chip: str
    arm: bool
    count: int
    """Of accelerators in a node."""
    spot: bool
    most: int
    why: str
    """Why so many."""
    accelerator: str
    """As nodes of such clusters are labelled."""
    labels: Mapping[str, str]
    """By which pods of `export kubernetes` find them, where the cluster itself sets none."""
    taints: tuple[tuple[str, str], ...]
    """That these pods bear."""


class Nodes(Struct, frozen=True, kw_only=True):
    """What a plan asks of a cluster of Kubernetes at a cloud."""

    name: str
    cluster: str
    region: str
    zone: str
    """"": any of the cluster's."""
    pools: tuple[Pool, ...]
    disk_gb: int
    disk_why: str


class Pooled(Protocol):
    """A cloud's `nodes.py`."""

    FLAVOUR: str
    """How `export kubernetes` calls its clusters."""

    def described(self, wanted: Nodes) -> Infrastructure:
        """As Described's."""


class Described(Protocol):
    """A cloud's `infrastructure.py`."""

    def described(self, wanted: Wanted) -> Infrastructure:
        """Raises InvalidValue, whose hint is the nearest that works, for what it cannot be."""

    def secret(self, reference: Reference) -> str:
        """A command that prints it, on a machine; of `described`'s own kinds."""


def clouds(what: str = "infrastructure") -> list[str]:
    """That have machines described here; or, of `nodes`, nodes of clusters."""
    return [
        name
        for name, folder in (registry.CLOUDS | registry.DESCRIBED).items()
        if util.find_spec(f"{__package__}.{folder}.{what}") is not None
    ]


def pooled(cloud: str) -> Pooled:
    folder = (registry.CLOUDS | registry.DESCRIBED)[cloud]
    found: Pooled = import_module(f"{__package__}.{folder}.nodes")
    return found


def of(cloud: str) -> Described:
    found: Described = import_module(f"{__package__}.{registry.CLOUDS[cloud]}.infrastructure")
    return found
