"""`tradewind ps` and `show` of a run that goes on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from msgspec import json
from msgspec.structs import replace

from tests.cli.conftest import Cli
from tests.lifecycle.builders import AT, SPEC, a_beat, a_machine, found, requested, submitted, up
from tradewind import store as stores
from tradewind.controller.loop import LEASE
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Event
from tradewind.sim.faults import RUN


def test_how_far_it_is_now(cli: Cli, tmp_path: Path) -> None:
    """By what its machine says: the journal tells of a step but rarely."""
    url = str(tmp_path / "store")
    store = stores.open(url)
    events: list[Event] = [submitted(), requested(), found(a_machine()), up()]
    store.create(places.live(RUN), b"{}")
    journal.append(store, RUN, 1, writer="w", at=AT, events=events)
    assert cli("ps", "--store", url, "--json").json["runs"][0]["step"] == 0
    beat = a_beat(step=1800.0, rate=1.0)
    store.replace(places.heartbeat(RUN, "m1"), json.encode(beat))
    assert cli("ps", "--store", url, "--json").json["runs"][0]["step"] == 1800
    assert "50 %" in cli("ps", "--store", url).out
    assert cli("show", RUN, "--store", url, "--json").json["summary"]["step"] == 1800
    shown = cli("show", RUN, "--store", url).out
    assert "work     1,800 of 3,600" in shown
    assert "now      leg 1 · working · step 1,800 of 3,600 · 1/s · done in 30m" in shown
    store.replace(places.heartbeat(RUN, "m1"), b"not a heartbeat")
    assert cli("ps", "--store", url, "--json").json["runs"][0]["step"] == 0


def test_a_job_that_tells_no_steps(cli: Cli, tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    store = stores.open(url)
    store.create(places.live(RUN), b"{}")
    events: list[Event] = [submitted(replace(SPEC, steps=False)), requested(), found(a_machine())]
    journal.append(store, RUN, 1, writer="w", at=AT, events=events)
    assert "  work     the job tells no steps\n" in cli("show", RUN, "--store", url).out


def test_what_goes_on_is_drawn_until_now(cli: Cli, tmp_path: Path) -> None:
    """And not until the last event, which may be hours ago."""
    url = str(tmp_path / "store")
    store = stores.open(url)
    store.create(places.live(RUN), b"{}")
    at: dict[int, list[Event]] = {60: [submitted(), requested(), found(a_machine())], 45: [up()]}
    for number, (ago_m, events) in enumerate(at.items(), 1):
        moment = AT - timedelta(minutes=ago_m)
        journal.append(store, RUN, number, writer="w", at=moment, events=events)
    shown = cli("show", RUN, "--store", url).out
    assert f" {'.' * 12}{'#' * 36} " in shown


def test_that_nobody_looks_after_it_is_said(cli: Cli, tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    store = stores.open(url)
    store.create(places.live(RUN), b"{}")
    events: list[Event] = [submitted(), requested(), found(a_machine()), up()]
    journal.append(store, RUN, 1, writer="w", at=AT - timedelta(hours=1), events=events)
    for words in (("ps",), ("show", RUN)):
        assert "No controller is running" in cli(*words, "--store", url).out
    store.replace(LEASE, b'{"writer":"w","count":1,"pass_s":10.0}')
    for words in (("ps",), ("show", RUN)):
        assert "No controller is running" not in cli(*words, "--store", url).out


def test_folders_that_are_not_runs_stop_no_listing(cli: Cli, tmp_path: Path) -> None:
    """Every machine may write below `runs/`."""
    url = str(tmp_path / "store")
    store = stores.open(url)
    journal.append(store, RUN, 1, writer="w", at=AT, events=[submitted()])
    store.create("runs/with space/logs/x", b"")
    store.create("runs/-option/logs/x", b"")
    for words in (("ps", "--all"), ("cost",), ("doctor", "runs")):
        assert cli(*words, "--store", url).code == 0, words
    listed = cli("ps", "--all", "--store", url, "--json").json["runs"]
    assert [each["run"] for each in listed] == [RUN]
    assert "not a run: -option, with space" in cli("doctor", "runs", "--store", url).out


def test_what_looks_like_a_secret_is_in_no_output(cli: Cli, tmp_path: Path) -> None:
    """Journals of older versions may hold tokens, in the environment or in the command."""
    url = str(tmp_path / "store")
    store = stores.open(url)
    token = "hf" + "_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3"
    job = {
        "command": f"HF={token} python train.py",
        "env": {"B": token, "OLD_TOKEN": "short-one", "NCCL_DEBUG": "INFO"},
    }
    events: list[Event] = [submitted(job=job), requested(), found(a_machine()), up()]
    store.create(places.live(RUN), b"{}")
    journal.append(store, RUN, 1, writer="w", at=AT, events=events)
    page = tmp_path / "report.html"
    told = [
        cli("show", RUN, "--store", url, "--json").out,
        cli("show", RUN, "--store", url).out,
        cli("ps", "--store", url, "--json").out,
        cli("report", RUN, "--store", url).out,
        cli("report", RUN, "--store", url, "--json").out,
        cli("report", RUN, "--store", url, "--html", str(page)).out + page.read_text(),
    ]
    for text in told:
        assert token not in text
        assert "short-one" not in text
    assert "NCCL_DEBUG" in told[0]
    assert "•••" in told[0]
    assert "HF=••• python train.py" in told[1]


def test_a_plan_shows_names_of_variables(cli: Cli, tmp_path: Path) -> None:
    work = tmp_path / "work.yaml"
    work.write_text(
        "work: {hours: 1, on: 1xA100-80GB}\n"
        "run: {command: x, env: {OLD_TOKEN: short-one, NCCL_DEBUG: INFO}, secrets: {A: file:/x}}\n"
    )
    ran = cli("plan", str(work), "--json")
    assert "short-one" not in ran.out
    run = ran.json["workload"]["run"]
    assert run["env"] == {"OLD_TOKEN": "•••", "NCCL_DEBUG": "INFO"}
    assert run["secrets"] == {"A": "file:/x"}
