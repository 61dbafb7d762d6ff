"""Records in which order files are synced, named and removed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


class Calls:
    """What is asked of the system, in order: `sync` and `name`, each with a path below the root."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        self.made: list[tuple[str, str]] = []
        self._root = root
        for name, of in (("link", 1), ("replace", 1), ("rename", 1)):
            self._note(patch, "name", name, of)
        self._note(patch, "sync", "fsync", 0)
        self._note(patch, "folder", "mkdir", 0)
        self._note(patch, "delete", "unlink", 0)

    def _note(self, patch: pytest.MonkeyPatch, word: str, name: str, of: int) -> None:
        real: Callable[..., object] = getattr(os, name)

        def noted(*values: object, **others: object) -> object:
            at = values[of]
            path = Path(f"/proc/self/fd/{at}").readlink() if isinstance(at, int) else Path(str(at))
            self.made.append((word, path.relative_to(self._root).as_posix()))
            return real(*values, **others)

        patch.setattr(os, name, noted)

    def since(self) -> list[tuple[str, str]]:
        """All but those of files without a name yet, which are told apart by that alone."""
        found = [(w, "new" if p.startswith(".tradewind-new/") else p) for w, p in self.made]
        self.made.clear()
        return found
