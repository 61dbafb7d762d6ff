"""Which image fits an accelerator: builds of PyTorch, the CUDA that each needs, and the driver.

A dated table, data/images.json, with its sources; a younger one may lie at a user's home.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import DecodeError, Struct, json

from tradewind.base import ownfiles
from tradewind.base.errors import BadFile
from tradewind.export.exported import Refused
from tradewind.model.accelerator import Accelerator

PACKAGED = Path(__file__).parent / "data" / "images.json"
OWN = "images.json"
"""In $TRADEWIND_HOME, by whoever keeps a younger table there."""


class Build(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    base: str
    """Of the image, with its digest."""
    chips: tuple[str, ...]
    """For which there are kernels: compute capabilities, or the makers' names of architectures."""
    chips_arm64: tuple[str, ...]
    """The same of builds for Arm processors."""
    index: str = ""
    """Of PyTorch's wheels."""
    cuda: str = ""
    driver: str = ""
    """The least that runs it."""
    brings_torch: bool = False
    """Nothing is to be installed: the base has it, or the job brings what it needs."""


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    as_of: str
    torch: str
    engines: Mapping[str, str]
    """Versions of them."""
    weights: Mapping[str, str]
    """Of models that workloads name: repositories of Hugging Face."""
    builds: Mapping[str, Build]
    """The first that fits is taken."""
    arm64: tuple[str, ...]
    sources: Mapping[str, str]


def table() -> Table:
    """The packaged one, or this user's, where that is younger."""
    packaged = _read(PACKAGED)
    own = ownfiles.home() / OWN
    if not own.is_file():
        return packaged
    theirs = _read(own)
    return theirs if theirs.as_of >= packaged.as_of else packaged


@cache
def _read(path: Path) -> Table:
    try:
        return json.decode(path.read_bytes(), type=Table)
    except (DecodeError, OSError) as error:
        raise BadFile(
            f"{path} is no table of images: {error}", hint="remove it: Tradewind has its own"
        ) from None


@cache
def ignored() -> str:
    """What is never sent to a build: histories, caches, files that hold secrets by their names."""
    return (PACKAGED.parent / "dockerignore.txt").read_text("utf-8")


def platform(known: Table, chip: Accelerator) -> str:
    return "linux/arm64" if chip.name in known.arm64 else "linux/amd64"


def chosen(known: Table, chip: Accelerator, named: str = "auto") -> tuple[str, Build]:
    """The build for an accelerator; one that was asked for by name is taken as it is."""
    if named != "auto":
        return named, known.builds[named]
    arm = chip.name in known.arm64
    for name, build in known.builds.items():
        if _runs(build.chips_arm64 if arm else build.chips, chip.compute_capability):
            return name, build
    there = "for Arm processors " if arm else ""
    raise Refused(
        f"PyTorch {known.torch} has no build {there}with kernels for {chip.name}"
        f" ({chip.compute_capability})",
        nearest="--accelerator NAME plans it for another; or, of a Dockerfile, --set build=NAME"
        " takes a build as it is",
    )


def _runs(built: tuple[str, ...], wanted: str) -> bool:
    """Kernels of NVIDIA's run on the same major version with no lower minor one."""
    if wanted in built:
        return True
    major, dot, minor = wanted.partition(".")
    if not dot:
        return False
    return any(
        each.partition(".")[0] == major and int(each.partition(".")[2]) <= int(minor)
        for each in built
        if "." in each
    )
