"""What jobs, machines and whoever writes a store have to say does nothing to a terminal but stand
there, whichever command shows it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import (
    AT,
    SPEC,
    WAY,
    a_beat,
    a_machine,
    found,
    requested,
    submitted,
    up,
)
from tests.telemetry.test_diagnose import figures
from tests.terminals import obeyed, shown
from tradewind import store as stores
from tradewind.cli import app
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Closed, Ended, Event, LegOver, Warned
from tradewind.sim.faults import RUN

EVIL = (
    "\x1b]52;c;ZXZpbA==\x07"  # writes to the clipboard
    "\x1b]0;title\x1b\\"
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\"
    "\x1b[2J\x1b[H\x1b[8mhidden\x1b[30;40m"  # erases, moves, hides
    '\x1bP$q"p\x1b\\'  # asks the terminal to answer
    "\x9b31m\x9d0;c1\x9c"  # C1: the same in one character
    "\x08\x0c\x0e\x7f\r"
    "\u202egnp.exe\u2066"  # reads backwards
    "\ninjected: a line of its own"
)
CLOSED = "closed-019999999999-abcdef"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("hostile") / "store"
    opened = stores.open(folder)
    opened.create(places.live(RUN), b"{}")
    spec = replace(
        SPEC,
        name=EVIL,
        job={"command": EVIL},
        ways=(replace(WAY, zone=EVIL, region=EVIL, instance_type=EVIL),),
    )
    events: list[Event] = [
        submitted(spec),
        replace(requested(way=spec.ways[0]), reason=EVIL),
        found(a_machine(EVIL)),
        up(),
        Warned(about="idle", level=1, reason=EVIL),
    ]
    assert journal.append(opened, RUN, 1, writer="w", at=AT, events=events)
    beat = a_beat(doing=EVIL, reason=EVIL, tail=EVIL, figures=(replace(figures(), host=EVIL),))
    (folder / "runs" / RUN / "machines" / EVIL).mkdir(parents=True)
    (folder / "runs" / RUN / "machines" / EVIL / "heartbeat.json").write_bytes(json.encode(beat))
    opened.create(places.first_log(RUN, 1, 0), EVIL.encode() + b"\xff\xfe")
    opened.create(places.log_piece(RUN, 1, 0, 0), EVIL.encode() + b"\xff\xc2")
    ended: list[Event] = [
        replace(submitted(spec), run_id=CLOSED),
        replace(requested(way=spec.ways[0], run_id=CLOSED), reason=EVIL),
        LegOver(leg=1, cause="lost", reason=EVIL, tail=EVIL),
        Ended(outcome="failed", reason=EVIL),
        Closed(reason=EVIL),
    ]
    assert journal.append(opened, CLOSED, 1, writer="w", at=AT, events=ended)
    opened.create(places.first_log(CLOSED, 1, 0), EVIL.encode() + b"\xff\xfe")
    for name in ("broken", EVIL.replace("/", "-")):
        path = folder / "runs" / name / "journal" / f"{1:020d}.json"
        path.parent.mkdir(parents=True)
        path.write_text(EVIL)
    return str(folder)


@pytest.mark.slow
def test_every_command_on_a_real_terminal(store: str, tmp_path: Path) -> None:
    env = os.environ | {
        "TRADEWIND_HOME": str(tmp_path),
        "TRADEWIND_STORE": store,
        "TERM": "xterm-256color",
        "COLUMNS": "100",
    }
    env.pop("NO_COLOR", None)
    said: dict[str, bytes] = {}
    for line in (
        ("ps",),
        ("ps", "--all"),
        ("ps", "--all", "--json"),
        ("show", RUN),
        ("show", RUN, "--json"),
        ("show", CLOSED),
        ("show", "nobody"),
        ("show", "broken"),
        ("top", "--once"),
        ("top", "--json"),
        ("logs", RUN),
        ("logs", RUN, "--json"),
        ("cost",),
        ("cost", "--by", "run", "--csv"),
        ("report", RUN),
        ("doctor", "runs"),
        ("doctor", "runs", "--json"),
        ("tick",),
        ("watch", CLOSED),
        ("stop", CLOSED),
        ("resume", RUN),
    ):
        _, out = shown([sys.executable, "-P", "-m", "tradewind", *line], env)
        assert obeyed(out) == [], (line, out)
        assert b"this is a bug" not in out, out
        assert b"No such option" not in out
        said[" ".join(line)] = out
    # It is there, and can be read.
    for name in (f"show {RUN}", f"show {CLOSED}", f"logs {RUN}"):
        assert b"52;c;ZXZpbA==" in said[name], said[name]
        assert "�".encode() in said[name]
    assert b"\ninjected" not in said[f"show {CLOSED}"]


def test_a_pipe_gets_a_log_byte_for_byte_and_a_terminal_on_request(
    store: str, tmp_path: Path
) -> None:
    import subprocess

    env = os.environ | {"TRADEWIND_HOME": str(tmp_path), "TRADEWIND_STORE": store}
    command = [sys.executable, "-P", "-m", "tradewind", "logs", RUN]
    wanted = EVIL.encode() + b"\xff\xc2"
    assert subprocess.run(command, env=env, capture_output=True, check=True).stdout == wanted
    code, out = shown([*command, "--raw"], env)
    assert code == 0
    assert out == wanted.replace(b"\n", b"\r\n")  # as terminals do it


def test_all_that_a_command_prints_is_made_safe(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also by one that has never heard of it: by click, by print, by rich, to either stream."""
    import click

    from tradewind.base.errors import BadFile
    from tradewind.cli import render

    ways: list[Callable[[], object]] = [
        lambda: click.echo(EVIL),
        lambda: click.echo(EVIL, err=True),
        lambda: click.secho(EVIL, fg="red", color=True),
        lambda: print(EVIL),  # noqa: T201
        lambda: sys.stderr.write(EVIL),
        lambda: sys.stdout.writelines([EVIL]),
        lambda: render.console().print(EVIL),
        lambda: render.console(stderr=True).print(EVIL),
        lambda: render.table([render.Column("a"), render.Column("b", wrap=True)], [[EVIL, EVIL]]),
        lambda: render.facts([EVIL], [(EVIL, [EVIL])]),
        lambda: render.print_json({EVIL: EVIL}),
        lambda: render.print_csv(["a"], [{"a": EVIL}, {"a": [EVIL]}]),
        lambda: render.note(EVIL),
    ]

    def everything(*_: object, **__: object) -> None:
        for way in ways:
            way()
        raise BadFile(EVIL, hint=EVIL)

    monkeypatch.setattr(app.command, "main", everything)
    assert app.run([]) == 4
    out, err = capfd.readouterr()
    assert obeyed(out.encode()) == []
    assert obeyed(err.encode()) == []
    assert out.count("52;c;ZXZpbA==") >= len(ways)
    assert "\x1b[31m" in out  # our own colour
    assert "\x1b[8m" not in out
    assert sys.stdout is not None
    assert not hasattr(sys.stdout, "unguarded")
