"""What a machine has brought of its job's output files: a list, and an object for each file.

The list (`places.outputs`) is one object for each leg and rank, replaced whole; the objects that it
names are written once, under names that never come again. So a reader has each file whole, as it
was when it was brought, whatever the machine does meanwhile. A later leg's list begins with what it
took over, so the newest list of a rank is all that there is of it.

Machines write it, so it is read as a claim: what is beyond these bounds is no list of ours.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from tradewind.base.errors import InvalidValue
from tradewind.model import globs
from tradewind.model.plausible import Amount, Count

MOST_FILES = 10_000
MOST_BYTES = 100_000_000_000
"""Of all files of a machine together."""
LONGEST = 500
"""Characters of a path."""

_Size = Annotated[int, Meta(ge=0, le=MOST_BYTES)]


class OutputFile(Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    """From the job's folder."""
    size: _Size
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    name: Annotated[str, Meta(pattern="^[0-9a-z]{1,64}(-[0-9a-z]{1,64}){0,3}$")]
    """Of its object, below `places.output_files`."""

    def __post_init__(self) -> None:
        if problem(self.path):
            raise InvalidValue(f"{self.path!r} cannot be an output: {problem(self.path)}")


class Outputs(Struct, frozen=True, forbid_unknown_fields=True):
    leg: Count
    rank: Count
    step: Amount = 0.0
    """How far the job was, as it had told by then."""
    files: Annotated[tuple[OutputFile, ...], Meta(max_length=MOST_FILES)] = ()

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)


def problem(path: str) -> str:
    """Why a file of this path is not brought, nor fetched; empty where it is."""
    if len(path) > LONGEST:
        return f"its path has more than {LONGEST} characters"
    if not path.isprintable() or "\\" in path:
        return "its name holds characters that not every computer takes"
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "it is not below the job's folder"
    if any(len(part.encode("utf-8", "surrogateescape")) > 200 for part in parts):
        return "a part of its path is longer than 200 bytes"
    return ""


_CODE = re.compile(r".+\.(py|pyw|pyc|pyx|so|pth|sh)")
_IMPORTED = (*sorted(sys.stdlib_module_names), "sitecustomize", "numpy", "torch", "tradewind")
"""What a job may import, for instance. Python looks for it in the folder of the script first."""


def covers_code(pattern: str) -> bool:
    """Whether it names what a job would import from its folder, if it were there."""
    if _CODE.fullmatch(pattern.rpartition("/")[2]):
        return True
    return any(globs.fits(f"{name}.{end}", [pattern]) for name in _IMPORTED for end in ("py", "so"))


def code_among(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Files of a job's folder that it may run or import, and that would be its outputs too."""
    return [name for name in names if _CODE.fullmatch(name) and globs.fits(name, patterns)]
