"""`tradewind top`, of runs and of folders; and what `show` says of what holds a run up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json

from tests.cli.conftest import Cli
from tests.lifecycle.builders import AT, a_beat, a_machine, found, requested, submitted, up
from tests.telemetry.test_diagnose import figures, ranks
from tradewind import store as stores
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Event
from tradewind.model.figures import Figures
from tradewind.sim.faults import RUN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a training of two ranks."""
    made = tmp_path / "checkpoints"
    (made / "telemetry").mkdir(parents=True)
    for each in ranks({"comm": 0.5, "loss": 2.25, "tokens_rate": 12345.6}, {"comm": 0.45}):
        (made / "telemetry" / f"{each.rank}.json").write_bytes(json.encode(each))
    return made


@pytest.fixture
def store(tmp_path: Path) -> str:
    """With a run whose machine waits for data."""
    url = str(tmp_path / "store")
    opened = stores.open(url)
    opened.create(places.live(RUN), b"{}")
    events: list[Event] = [submitted(), requested(), found(a_machine()), up()]
    journal.append(opened, RUN, 1, writer="w", at=AT, events=events)
    beat = a_beat(step=1800.0, rate=1.0, figures=(figures(data=0.38),))
    opened.replace(places.heartbeat(RUN, "m1"), json.encode(beat))
    return url


def test_a_folder(cli: Cli, folder: Path) -> None:
    shown = cli("top", str(folder)).out
    assert "communication-bound: 45 % of each step (400 ms) waits for collectives" in shown
    for text in ("12,346", "2.25", "50 %", "45 %", "107GB", "640 W", "1900"):
        assert text in shown
    told = cli("top", str(folder), "--json").json["trainings"][0]
    assert [each["rank"] for each in told["figures"]] == [0, 1]
    assert told["figures"][0]["loss"] == 2.25
    assert told["figures"][1]["loss"] is None
    assert told["figures"][0]["gpu"]["power_w"] == 640
    assert told["diagnosis"][0]["kind"] == "communication-bound"
    assert told["diagnosis"][0]["share"] == 0.45
    assert not told["over"]
    assert "communication-bound" in cli("top", str(folder.parent), "--once").out


def test_it_fits_into_sixty_columns(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = cli("top", str(folder)).out
    assert max(map(len, shown.splitlines())) <= 60
    for title in ("rank", "step", "ms/step", "loss", "data", "comm", "GPU"):
        assert title in shown
    assert "\x1b" not in shown


def test_one_whose_process_is_gone_is_over(cli: Cli, tmp_path: Path) -> None:
    import platform

    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    told = figures(host=platform.node()[:64], pid=process.pid)
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "0.json").write_bytes(json.encode(told))
    assert "over: it has ended after step 1,000" in cli("top", str(tmp_path)).out


def test_all_runs_or_one(cli: Cli, store: str) -> None:
    for arguments in ((), (RUN,)):
        shown = cli("top", *arguments, "--store", store).out
        assert RUN in shown
        assert "working · step 1,800 of 3,600" in shown
        assert "input-bound: 38 % of each step waits for data; 2 loader workers on 16" in shown
    told = cli("top", "--store", store, "--json").json["trainings"]
    assert [each["name"] for each in told] == [RUN]
    assert told[0]["figures"][0]["step"] == 1000


def test_show_says_what_holds_it_up(cli: Cli, store: str) -> None:
    assert "  why      input-bound: 38 % of each step" in cli("show", RUN, "--store", store).out
    told = cli("show", RUN, "--store", store, "--json").json
    assert told["diagnosis"][0]["kind"] == "input-bound"


def test_a_job_that_tells_nothing(cli: Cli, store: str) -> None:
    opened = stores.open(store)
    opened.replace(places.heartbeat(RUN, "m1"), json.encode(a_beat(step=5.0)))
    assert "its job has told nothing of itself yet" in cli("top", "--store", store).out
    assert "why" not in cli("show", RUN, "--store", store).out


def test_nothing_to_show(cli: Cli, tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    stores.open(url)
    assert "no runs are running" in cli("top", "--store", url).out
    for what, words in (
        (str(tmp_path), "no training has told anything"),
        (str(tmp_path / "none"), "there is no folder"),
        ("nobody", "no run 'nobody'"),
    ):
        ran = cli("top", what, "--store", url)
        assert ran.code == 3
        assert words in ran.err


def test_on_a_terminal_it_is_refreshed_in_place_until_it_is_over(folder: Path) -> None:
    """As in a terminal of 80 columns; it ends by itself when the training has."""
    import pty

    main, other = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "tradewind", "top", str(folder), "--every", "0.2"]
    with subprocess.Popen(command, stdout=other, stderr=other, env=env) as process:
        os.close(other)
        seen = b""
        while b"communication-bound" not in seen:
            seen += os.read(main, 4096)
        for rank in range(2):
            over = Figures(rank=rank, world=2, step=1001, over=True)
            beside = folder / "telemetry" / f".{rank}"
            beside.write_bytes(json.encode(over))
            beside.replace(folder / "telemetry" / f"{rank}.json")
        try:
            while part := os.read(main, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
        assert process.wait() == 0
    os.close(main)
    assert b"over: it has ended after step 1,001" in seen
    assert b"\x1b[1A" in seen  # up again, to draw over what was there
