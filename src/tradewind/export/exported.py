"""What an export comes to: texts by path, and what a reader must still do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tradewind.base.errors import InvalidValue


class Refused(InvalidValue):
    """A kind cannot say this plan. The message is the reason, the hint the nearest that works."""

    def __init__(self, reason: str, *, nearest: str) -> None:
        super().__init__(reason, hint=nearest)


@dataclass(frozen=True, slots=True)
class File:
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    files: Mapping[str, File]
    """By path below the folder, with `/`."""
    notes: tuple[str, ...] = ()
    """What is left to the reader: what could not be carried over, or has to be made first."""

    def __post_init__(self) -> None:
        for path in self.files:
            assert not {"", ".", ".."} & set(path.split("/")), path


@dataclass(frozen=True, slots=True)
class Setting:
    """What may be asked of a kind besides its plan: `--set NAME=VALUE`."""

    name: str
    words: str
    choices: tuple[str, ...] = ()
    """The first is taken where nothing is said. None: any text, and "" where nothing is said."""
    example: str = ""
    """Of a setting without choices."""
