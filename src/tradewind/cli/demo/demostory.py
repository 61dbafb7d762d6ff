"""The demo's run as it is told while it goes on, and what is done to it meanwhile."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tradewind.base import clock
from tradewind.base.units import format_money
from tradewind.cli import render
from tradewind.lifecycle.words import event_words
from tradewind.model import event as events
from tradewind.report.words import after, money, span

if TYPE_CHECKING:
    from tradewind.demo.alone import Alone
    from tradewind.demo.rehearsal import Rehearsal
    from tradewind.demo.world import World
    from tradewind.journal.journal import Commit
    from tradewind.model.event import Event

Live = Callable[[str], None]
_EACH_S = 10.0
"""Into a pipe, how it stands is told so often."""
_MACHINE_AT, _ANY_AT, _CONTROLLER_AT = 0.1, 0.3, 0.45
"""How much of the work is done when the demo itself kills a spot machine (on a slow computer none
may get that far; then any), and the controller."""
_ALONE_S = 3.0
"""For so long nobody looks after the run."""
_REAL = (
    "Real: the controller, the store, supervisors, two training processes, checkpoints, signals"
    " and kills."
)
_SIMULATED = (
    "Simulated: machines are processes of this computer, priced as the planned ones. Spot comes and"
    " goes in three made-up zones, and an hour goes by in {seconds:g} seconds."
)


def introduce(world: World, alone: Alone) -> None:
    spec = world.spec
    assert spec.deadline_s is not None
    render.paragraph(_REAL, indent="  ")
    render.paragraph(_SIMULATED.format(seconds=3600 / spec.speed), indent="  ")
    click.echo()
    for way in (spec.ways[0], spec.ways[-1]):
        price = format_money(round(way.price / spec.speed), digits=2)
        what = f"{way.instance_type} of {way.region}"
        click.echo(f"  {way.market.replace('_', '-'):<10} {price:>7}/h  {what}")
    once = span((alone.start_s + alone.work_s) * spec.speed)
    until = span((spec.deadline_s - clock.now().timestamp()) * spec.speed)
    click.echo(f"\nAlone it takes {once} of that time; the deadline is in {until}.\n")


def watch(run: Rehearsal, live: Live, steps: int) -> None:
    """Follows it, kills one of its machines without notice, and later its controller."""
    say = _sayer(run, live)
    story = _Story(say)
    machine_killed = controller_killed = False
    back_s: float | None = None
    for commits in run.passing():
        for commit in commits:
            story.tell(commit)
        sight = run.sight
        live(_status(run, steps))
        due = not machine_killed and sight.step >= _MACHINE_AT * steps
        if due and run.kill_machine(spot=sight.step < _ANY_AT * steps):
            machine_killed = True
            say("✗ the demo kills its machine: SIGKILL to all of it, without notice", "red")
        if not controller_killed and sight.step >= _CONTROLLER_AT * steps:
            controller_killed = True
            run.kill_controller()
            back_s = clock.stopwatch() + _ALONE_S
            say("✗ the demo kills the controller: SIGKILL. The training continues alone", "red")
        if back_s is not None and clock.stopwatch() >= back_s:
            back_s = None
            run.look_after()
            say("another controller reads the journal, and takes over", "green")


class _Story:
    """A run's events as they come. Launches that are refused are told together: a refusal costs
    nothing, so they are many."""

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self._asked = self._where = ""
        self._refused: dict[str, int] = {}

    def tell(self, commit: Commit) -> None:
        for event in commit.events:
            self._event(event, commit.at.timestamp())

    def _event(self, event: Event, at_s: float) -> None:
        match event:
            case events.LegRequested():
                self._asked, self._where = event_words(event), event.request.way.zone
            case events.LaunchRefused():
                self._asked = ""
                self._refused[self._where] = self._refused.get(self._where, 0) + 1
            case events.MachinesFound():
                self._launched(at_s)
            case events.LegDraining():
                self._say(event_words(event), "yellow", at_s)
            case events.LegOver() | events.Ended():
                self._say(event_words(event).partition("\n")[0], None, at_s)

    def _launched(self, at_s: float) -> None:
        if self._refused:
            told = ", ".join(
                f"{zone}{f' ({times} times)' if times > 1 else ''}"
                for zone, times in self._refused.items()
            )
            self._say(f"no spot machine was available in {told}", "yellow", at_s)
            self._refused.clear()
        self._say(self._asked, "cyan", at_s)
        self._asked = ""


def _sayer(run: Rehearsal, live: Live) -> Callable[..., None]:
    begun_s = clock.now().timestamp()

    def say(text: str, colour: str | None = None, at_s: float | None = None) -> None:
        gone_s = max((at_s or clock.now().timestamp()) - begun_s, 0.0)
        live("")
        when = f"{after(gone_s * run.world.spec.speed):>8}  "
        render.paragraph(f"{when}{text}", indent=" " * len(when), fg=colour)

    return say


def _status(run: Rehearsal, steps: int) -> str:
    sight, spec = run.sight, run.world.spec
    assert spec.deadline_s is not None
    left = span((spec.deadline_s - clock.now().timestamp()) * spec.speed)
    where = "no machine"
    if sight.state.leg:
        way = sight.state.leg.request.way
        at_work = any(beat.doing == "working" for beat in sight.beats.values())
        where = f"{'' if at_work and sight.step else 'starts '}{way.zone}"
    cost = money(sight.cost)
    return f"step {sight.step:,.0f} of {steps:,} · {where} · {cost} so far · {left} left"


@contextmanager
def live() -> Iterator[Live]:
    """A line that is written over again; into a pipe, every now and then one that is not."""
    terminal = sys.stdout.isatty()
    due_s = clock.stopwatch() + _EACH_S

    def show(text: str) -> None:
        nonlocal due_s
        if terminal:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[2K{text[:width]}", nl=False)
        elif text and clock.stopwatch() >= due_s:
            due_s = clock.stopwatch() + _EACH_S
            click.echo(text)

    try:
        yield show
    finally:
        show("")
