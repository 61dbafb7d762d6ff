"""Where checkpoints lie.

    <prefix>checkpoints/<leg>/<step>.json              the manifest: the checkpoint exists
    <prefix>shards/<leg>/<step>-<life>-<save>/__<rank>_0.distcp    what a rank wrote
                                              .metadata       for plain PyTorch
                                              index.json      the same for us

These are keys in a store. In a folder they are files, written once and straight there. A bucket is
given the ranks' files from memory, and `folder` keeps them too, to be read sooner after a restart
on the same machine. `life` differs each time that a job starts, and `save` each time that it saves,
so no file is ever written twice. In a run, the prefix is `runs/<run-id>/`, and the manifest is the
key that supervisors look for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tradewind.base.errors import InvalidValue


class Place:
    """`Place("checkpoints")`, or with a store, the prefix of a run and its leg. `resume`, where
    it is not None, is the newest manifest of earlier legs that may be read, "" for none."""

    def __init__(
        self,
        folder: str | Path | None = None,
        store: Any = None,
        prefix: str = "",
        *,
        leg: int = 0,
        resume: str | None = None,
    ) -> None:
        from tradewind import store as stores
        from tradewind.store.base import Pieced

        if folder is None and store is None:
            raise InvalidValue("a place for checkpoints needs a folder or a store")
        if store is None:
            store = stores.open(Path(folder or ""))
        elif isinstance(store, str | Path):
            store = stores.open(store)
        self.store, self.leg, self.resume = store, leg, resume
        self._legs = f"{prefix}legs/" if prefix else ""
        self.checkpoints, self.shards = f"{prefix}checkpoints/", f"{prefix}shards/"
        parts = urlsplit(store.url)
        self.remote = parts.scheme != "file"
        if self.remote and not isinstance(store, Pieced):
            raise InvalidValue(f"{store.url} is not for large objects, as checkpoints are")
        if not self.remote:
            folder = unquote(parts.path)
        self.files = Path(folder).absolute() / self.shards if folder is not None else None
        """Where the ranks' files are on this machine; None: nowhere."""

    @classmethod
    def of_run(
        cls, folder: str | Path | None = None, env: Mapping[str, str] | None = None
    ) -> Place | None:
        """Of the run that this process is a job of; None: of none. `folder` is for a bucket."""
        env = os.environ if env is None else env
        if not env.get("TRADEWIND_STORE") or not env.get("TRADEWIND_RUN"):
            return None
        return cls(
            folder,
            env["TRADEWIND_STORE"],
            f"runs/{env['TRADEWIND_RUN']}/",
            leg=int(env.get("TRADEWIND_LEG", "0")),
            resume=env.get("TRADEWIND_RESUME"),
        )

    def manifest(self, step: int) -> str:
        return f"{self.checkpoints}{self.leg:06d}/{step:020d}.json"

    def name(self, step: int, life: str, save: int) -> str:
        """Of the folder of shards, below `shards` and below `files`."""
        return f"{self.leg:06d}/{step:020d}-{life}-{save:06d}"

    def folder(self, name: str) -> Path | None:
        """Where plain PyTorch can read it; None if that is in a bucket: here are only the files
        that this machine's ranks wrote."""
        return self.files / name if self.files is not None and not self.remote else None

    def least(self, keep: int) -> int:
        """How many are kept. In a run two at least: while a leg is being replaced, the next may
        have chosen the one before the newest."""
        return max(keep, 2) if self._legs else keep

    def replaced(self) -> bool:
        """Whether a later leg has begun to look for what to go on from."""
        if not self._legs:
            return False
        return any(name > f"{self.leg:06d}" for name in self.store.folders(self._legs))
