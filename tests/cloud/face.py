"""A face is how one cloud speaks: it reads that cloud's requests, does by the world what they ask,
and writes the answers. What is true of every cloud (time, room, quotas, bodies, ends, faults, the
bill) is the world's, and a face that needs it asks there.

A module with `FACE`, an object of a subclass of Face, is named when the equipment is started
(server.py). faces/rest needs only a table for each cloud with a small API; a cloud with a large one
has a folder of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.cloud.dials import Dials

if TYPE_CHECKING:
    from tests.cloud.controls import Controls
    from tests.cloud.world import Machine, World


@dataclass
class Call:
    """One request, read as far as the door must know it; a face may have a subclass with more."""

    action: str
    """What faults and lost answers are set for, in the cloud's own word."""
    environ: dict[str, Any]
    body: bytes
    where: dict[str, str] = field(default_factory=dict)
    """What `calls` tells besides the action: a region, a path."""


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass(frozen=True)
class Billing:
    """From its launch (or from when it is shown as running) to its end: at least `least_s`, and in
    whole steps of `step_s`, where that is not 0."""

    least_s: float = 0.0
    step_s: float = 0.0
    from_running: bool = False
    free_s: float = 0.0
    """A spot machine that is taken sooner than this costs nothing."""


class Refusal(Exception):
    """Why something is not done. A face has its own code for each sort: unauthorized, invalid,
    unknown, duplicate, in_use, elsewhere, quota, capacity, pace."""

    def __init__(self, sort: str, words: str = "") -> None:
        super().__init__(words or sort)
        self.sort, self.words = sort, words


class NotYet(Exception):
    """Whoever asks waits: it is answered by asking again, without the world's lock in between. For
    questions only."""

    def __init__(self, again: str = "") -> None:
        """`again`: what is asked then, where it is not the same."""
        super().__init__(again)
        self.again = again


class Face:
    name = ""
    notice_s = 0.0
    """Before a spot machine is taken."""
    billing = Billing()
    quotas: Mapping[str, str] = {}
    """Their codes, and what each is called."""
    quotas_by_region = True
    statuses: Mapping[str, int] = {}
    """HTTP's, for errors that are not answered by 400."""
    metadata_variable = ""
    """By which a program finds another metadata service than that of 169.254.169.254."""
    metadata_names: tuple[str, ...] = ()
    """Of hosts, by which programs look for it."""
    dials: type[Dials] = Dials
    world: World

    def opened(self, world: World) -> None:
        """Before the first request."""
        self.world = world

    def controls(self) -> Controls:
        """What a test may ask for; with more of its own, a subclass of Controls."""
        from tests.cloud.controls import Controls

        return Controls(self.world)

    # -- the API -----------------------------------------------------------------------------------

    def read(self, environ: dict[str, Any], body: bytes) -> Call:
        raise NotImplementedError

    def answer(self, call: Call) -> Answer:
        """Carried out. Called with the world's lock held."""
        raise NotImplementedError

    def error(self, call: Call, code: str, words: str, status: int) -> Answer:
        """An error that a test has asked for."""
        raise NotImplementedError

    def refused(self, call: Call, refusal: Refusal) -> Answer:
        """What `answer` has raised, or the door itself (sort `pace`)."""
        raise NotImplementedError

    # -- machines ----------------------------------------------------------------------------------

    def size(self, kind: str) -> tuple[int, int]:
        """CPUs and GPUs of a type, for an invented price where none was set."""
        return 1, 0

    def counts(self, kind: str, market: str) -> tuple[str, float]:
        """Which quota a machine counts against, and how much; ("", 0) for none."""
        return "", 0.0

    def after_shutdown(self, machine: Machine) -> str:
        """What a shutdown from inside does: `ended`, `stopped` (it remains, with its volumes, and
        costs nothing itself), or `billed`: to the cloud it is as it was."""
        return "ended"

    def shown(self, machine: Machine) -> None:
        """The API's record may follow: `machine.state` has changed."""

    def noticed(self, machine: Machine) -> None:
        """It will be taken, at `machine.taken_at`."""

    def ended(self, machine: Machine) -> None:
        """It has ended just now; listings may show it later."""

    def billed_until(self, machine: Machine) -> float | None:
        """None while it is not over."""
        return machine.ended

    def metadata(
        self, machine: Machine, method: str, path: str, headers: Mapping[str, str]
    ) -> Answer | None:
        """What the machine's own metadata service answers; None is 404."""
        return None

    def metadata_asked(
        self, machine: Machine, method: str, target: str, headers: Mapping[str, str]
    ) -> Answer | None:
        """The same, for a face that reads queries too. May raise NotYet."""
        return self.metadata(machine, method, target.partition("?")[0], headers)

    def metadata_found_by(self, host: str, port: int) -> dict[str, str]:
        """Variables of a body whose metadata service is there, and not at 169.254.169.254."""
        return {self.metadata_variable: f"http://{host}:{port}/"} if self.metadata_variable else {}
