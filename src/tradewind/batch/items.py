"""A file of items, one a line: JSON, or plain text as it is. Any line is found at once."""

from __future__ import annotations

import hashlib
import json
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tradewind.base.errors import BadFile, NoAccess


@dataclass(frozen=True, slots=True)
class Item:
    index: int  # from 0, in the file
    value: Any


class Items:
    """Of a million items only the places of their lines are in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._starts = array("Q")
        digest, place = hashlib.sha256(), 0
        try:
            with path.open("rb") as file:
                for line in file:
                    if line.strip():
                        self._starts.append(place)
                    place += len(line)
                    digest.update(line)
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
        if not self._starts:
            raise BadFile(f"{path} has no items", hint="one a line: JSON, or plain text")
        self.sha256 = digest.hexdigest()
        self._json = path.suffix in (".jsonl", ".json", ".ndjson")

    def __len__(self) -> int:
        return len(self._starts)

    def read(self, first: int, end: int) -> list[Item]:
        found = []
        with self.path.open("rb") as file:
            for index in range(first, end):
                file.seek(self._starts[index])
                found.append(Item(index, self._value(index, file.readline())))
        return found

    def _value(self, index: int, line: bytes) -> Any:
        try:
            return json.loads(line) if self._json else line.decode().rstrip("\r\n")
        except ValueError as error:
            raise BadFile(f"{self.path}: item {index} is not JSON: {error}") from None
