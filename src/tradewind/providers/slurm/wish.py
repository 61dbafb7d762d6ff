"""What `tradewind setup slurm` is asked for, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.base.units import parse_bandwidth
from tradewind.model import buckets
from tradewind.model.job import is_image
from tradewind.providers.slurm import login
from tradewind.providers.slurm.containers import KINDS, is_file

HERE = "here"
"""The login node that is this computer."""
_WORD = re.compile(r"[\w.+-]{1,64}", re.ASCII)
_CONSTRAINT = re.compile(r"[\w.,&|*()\[\]+-]{1,200}", re.ASCII)
_PATH = re.compile(r"/[\w./@+ ~-]*")


class Wish(Struct, frozen=True, kw_only=True):
    """What is "" or empty was not asked for: what was set up before stays."""

    store_url: str
    logins: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    account: str = ""
    qos: str = ""
    constraint: str = ""
    folder: str = ""
    scratch: str = ""
    accelerator: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    containers: str = ""
    image: str = ""
    unit_price: str = ""
    network: str = ""
    interfaces: str = ""
    bucket_region: str = ""

    @property
    def accelerators(self) -> dict[str, str]:
        return dict(each.split("=", 1) for each in self.accelerator)

    @property
    def unit_usd(self) -> float:
        return float(self.unit_price.removeprefix("$")) if self.unit_price else 0.0

    @property
    def network_gbps(self) -> float:
        return parse_bandwidth(self.network) / 1e9 if self.network else 0.0


def checked_url(store_url: str) -> str:
    scheme, found, rest = store_url.partition("://")
    if not found:
        scheme, rest = "file", store_url
        store_url = f"file://{store_url}"
    wrong = scheme == "file" and not rest.startswith("/")
    if wrong or scheme not in (*buckets.STORES, "file") or not rest.strip("/"):
        known = ", ".join(f"{each}://BUCKET" for each in buckets.STORES)
        raise InvalidValue(
            f"nodes of a cluster cannot reach the store {store_url!r}",
            hint=f"one of {known}, or file:///FOLDER on a file system that all nodes and this"
            " computer share",
        )
    return store_url.rstrip("/")


def wish_of(store_url: str, logins: Sequence[str], settings: Mapping[str, Any]) -> Wish:
    """Raises what is wrong with it."""
    given = {name: value for name, value in settings.items() if value}
    several = tuple(dict.fromkeys("" if each == HERE else each for each in logins))
    wish = Wish(store_url=store_url, logins=several, **given)
    for each in several:
        login.check(each)
    for name in ("account", "qos"):
        if (value := getattr(wish, name)) and not _WORD.fullmatch(value):
            _refuse(name, value, "is no name of Slurm's", "physics")
    for value in wish.partition:
        if not _WORD.fullmatch(value):
            _refuse("partition", value, "is no name of Slurm's", "gpu")
    if wish.constraint and not _CONSTRAINT.fullmatch(wish.constraint):
        _refuse("constraint", wish.constraint, "is none that sbatch takes", "'a100&ib'")
    for name in ("folder", "scratch"):
        if (value := getattr(wish, name)) and not _PATH.fullmatch(value):
            _refuse(name, value, "is no absolute path", "/scratch/me/tradewind")
    for value in wish.accelerator:
        if not re.fullmatch(r"[\w.+-]+=[A-Za-z][\w. -]*", value):
            _refuse("accelerator", value, "is no PARTITION=NAME", "gpu=a100-80gb")
    for value in wish.prepare:
        if "\n" in value or "\0" in value:
            _refuse("prepare", repr(value), "is more than one line", "'module load python/3.12'")
    if wish.containers and wish.containers not in KINDS:
        _refuse("containers", wish.containers, "is nothing that we know", " or ".join(KINDS))
    if wish.image and not is_image(wish.image) and not is_file(wish.image):
        _refuse("image", wish.image, "is no image", "registry/team/image:tag or /shared/job.sif")
    if wish.unit_price and not re.fullmatch(r"\$?\d+(\.\d+)?", wish.unit_price):
        _refuse("unit_price", wish.unit_price, "is no price", "$0.02")
    assert wish.network_gbps >= 0  # raises what is wrong with it
    return wish


def named(text: str) -> str:
    """What a cluster is called, of the name that Slurm has for it."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "slurm"


def _refuse(name: str, value: str, words: str, example: str) -> NoReturn:
    raise InvalidValue(f"--{name.replace('_', '-')} {value} {words}", hint=f"for example {example}")
