"""Fronts on this computer: HAProxy before the replicas of each service that was submitted here.

`$TRADEWIND_HOME/fronts/<hash>` is the folder of one. HAProxy outlives the controller that started
it, and the next pass of any controller of this home takes it over, or starts it again. Two passes
at once wait for each other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.base.errors import NoAccess, SourceFailed
from tradewind.base.ownfiles import home, make_folder, replace
from tradewind.providers.local.files import locked
from tradewind.services.action import EndFront, LookFront, TendFront
from tradewind.services.seen import FrontSeen

if TYPE_CHECKING:
    from tradewind.front.routes import Front
    from tradewind.front.runner import Runner

_RUNNERS: dict[Path, Runner] = {}
"""Of this process, by folder: who has started a HAProxy buries it, when it ends."""
_LONGEST = 75
"""Of a folder's path: the socket of a front lies in it, and the names of sockets are short."""


def folder(service_id: str) -> Path:
    name = hashlib.sha256(f"{home().resolve()}/{service_id}".encode()).hexdigest()[:12]
    here = home().resolve() / "fronts" / name
    if len(str(here)) <= _LONGEST and not set(str(here)) & set("'\"\\ ,()"):
        return here
    return Path("/tmp") / f"tradewind-fronts-{os.getuid()}" / name


class Fronts:
    def __init__(self) -> None:
        self._told: dict[str, Front] = {}

    def look(self, step: LookFront) -> FrontSeen | None:
        with self._held(step.service_id) as runner:
            if not runner.running():
                return None
            if (runner.folder / "ending").exists():
                return FrontSeen(current=1)  # it finishes, and does not answer any more
            try:
                found = runner.look()
            except SourceFailed:
                return None
        return FrontSeen(
            current=found.current,
            queued=found.queued,
            held=found.held,
            total=found.total,
            denied=found.denied,
            busy={each.id: each.current + each.queued for each in found.replicas},
            up=tuple(each.id for each in found.replicas if each.health.value == "up"),
        )

    def tend(self, step: TendFront) -> None:
        from tradewind.front.told import backends_of, front_of

        front = front_of(step.front, step.health, step.in_time_s)
        with self._held(step.service_id) as runner:
            (runner.folder / "ending").unlink(missing_ok=True)
            if self._told.get(step.service_id) != front or not runner.alive():
                runner.start(front)
                self._told[step.service_id] = front
            runner.apply(backends_of(step.backends))

    def end(self, step: EndFront) -> None:
        """Asked again at each pass: it ends with its last answer, or when its time is up."""
        from tradewind.base import clock

        with self._held(step.service_id) as runner:
            mark = runner.folder / "ending"
            now = clock.epoch()
            if not mark.exists():
                replace(mark, f"{now:.0f}".encode())
                runner.let_finish()
                return
            begun = now
            with suppress(OSError, ValueError):
                begun = float(mark.read_text())
            if not 0 <= now - begun < step.finish_s:
                runner.stop()

    @contextmanager
    def _held(self, service_id: str) -> Iterator[Runner]:
        from tradewind.front.runner import Runner

        place = folder(service_id)
        make_folder(place.parent)
        if place.parent.stat().st_uid != os.getuid():
            raise NoAccess(f"{place.parent} is another user's", hint="remove it")
        make_folder(place)
        with locked(place / "lock", wait=True):
            yield _RUNNERS.setdefault(place, Runner(place))
