"""What is wrong with one run, or with what is set up, stays there: commands do for all others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.lifecycle.builders import SPEC, WAY, a_request
from tradewind.api import fleet
from tradewind.base import steps
from tradewind.base.errors import BadFile
from tradewind.cli.runs import show
from tradewind.controller.drive import performer
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Event, LegRequested, Submitted
from tradewind.store.local import LocalStore

NOW = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """With two runs: one that is well, and one whose journal says what cannot be."""
    made = LocalStore(tmp_path / "store")
    for name in ("good-1", "bad-1"):
        made.create(places.live(name), b"{}")
        events: list[Event] = [
            Submitted(run_id=name, spec=SPEC),
            LegRequested(request=a_request(1, run_id=name, hard_stop_s=3600, way=WAY), reason="r"),
        ]
        for number, event in enumerate(events, 1):
            assert journal.append(made, name, number, writer="w", at=NOW, events=[event])
    key = f"runs/bad-1/journal/{2:020d}.json"
    data = made.get(key).replace(b'"price":', b'"price":1' + b"0" * 400)
    made.replace(key, data)
    return made


def test_a_broken_run_keeps_no_command_from_the_others(cli: Cli, store: LocalStore) -> None:
    told = cli("ps", "--store", store.url)
    assert "good-1" in told.out
    assert "bad-1" in told.err
    assert "this is a bug" not in told.out + told.err
    assert cli("show", "good-1", "--store", store.url).code == 0
    broken = cli("show", "bad-1", "--store", store.url)
    assert (broken.code, "this is a bug" in broken.err) == (4, False)
    assert cli("stop", "good-1", "--no-wait", "--store", store.url).code == 0


def test_what_is_no_volume_is_not_read_as_one(cli: Cli, store: LocalStore) -> None:
    """Nor does it keep anybody from stopping the run: the commits are there."""
    store.replace("runs/good-1/volumes/stray.txt", b"x")
    store.replace("runs/good-1/volumes/1.jsonl", b"x")
    assert len(journal.read(store, "good-1")) == 2
    assert cli("stop", "good-1", "--no-wait", "--store", store.url).code == 0


def test_a_record_that_cannot_be_true_is_its_provider_s_trouble(store: LocalStore) -> None:
    """A region with a space in it ended `watch` at its first pass."""
    bucket = LocalStore(Path(store.url.removeprefix("file://")))
    ssh = b'{"hosts": {"a": {"target": "-oProxyCommand=x", "region": "r", "gpus": {}}}}'
    bucket.replace(places.footprint("ssh"), ssh)
    found = fleet.providers(bucket)
    assert set(found) == {"local", "ssh"}
    with pytest.raises(BadFile, match=r"providers/ssh.json"):
        found["ssh"].list_machines()
    controller = fleet.loop(bucket).controller
    sight = steps.run(controller.look(), performer(bucket, found))
    assert [name for name, _ in sight.troubles] == ["ssh"]
    assert "local" in sight.clocks


@pytest.mark.parametrize("year", [1, 1970, 2030, 9999])
def test_a_clock_that_was_wrong_makes_no_long_line(
    year: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """39 MB in 2030, 2 GB in 1970, 22 GB of memory in 9999."""
    wrong = NOW.replace(year=year)
    leg = {"leg": 1, "where": "here", "cause": "lost", "market": "spot"}
    legs = [
        leg | {"from": NOW, "up": NOW + timedelta(minutes=1), "to": NOW + timedelta(hours=1)},
        leg | {"leg": 2, "from": wrong, "up": wrong, "to": NOW + timedelta(hours=2)},
        leg | {"leg": 3, "from": NOW, "up": wrong, "to": wrong},
    ]
    show.timeline(legs)
    told = capsys.readouterr()
    assert max(map(len, told.out.splitlines())) < 120
    assert "wrong clock" in told.out + told.err
