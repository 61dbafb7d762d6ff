from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.cli.conftest import Cli
from tests.ledger.making import HOUR_S, NOON_S, events_of
from tests.lifecycle.builders import AT, SAMPLES, SPOT, WAY, sample
from tests.lifecycle.test_samples import FOLDED
from tests.local_http import LocalHttp
from tradewind import store
from tradewind.controller.loads import Kept
from tradewind.journal import journal
from tradewind.journal.journal import FORMAT
from tradewind.ledger import focus
from tradewind.model import places
from tradewind.model.run import Way

ROOT = Path(__file__).parents[2]
Put = Callable[..., None]


@pytest.fixture
def put(home: Path) -> Put:
    """Writes a run into the default store."""

    def write(run_id: str, start_s: int, *stays: tuple[Way, int | None], **more: Any) -> None:
        opened = store.open()
        events = events_of(run_id, start_s, *stays, **more)
        # All at once: how they are spread over commits is no matter of money.
        assert journal.append(opened, run_id, 1, writer="w", at=AT, events=_foldable(events))

    return write


def _foldable(events: list[Any]) -> list[Any]:
    """With an end of each leg, as a controller would have written it."""
    from tradewind.model.event import Ended, LegOver, LegRequested

    found: list[Any] = []
    leg = 0
    for event in events:
        if isinstance(event, LegRequested | Ended) and leg:
            found.append(LegOver(leg=leg, cause="interrupted", reason="r"))
        if isinstance(event, LegRequested):
            leg = event.request.leg
        found.append(event)
    return found


def three(put: Put) -> None:
    put("run-a1", NOON_S - 50 * HOUR_S, (SPOT, HOUR_S), (WAY, HOUR_S), project="nlp", user="ada",
        tags={"team": "blue"}, predicted_cost=4_000_000)  # fmt: skip
    put("run-a2", NOON_S - 5 * HOUR_S, (replace(SPOT, start_cost=700_000), None), outcome="",
        project="nlp", predicted_cost=40_000_000)  # fmt: skip
    put("run-b1", NOON_S - 9 * HOUR_S, (WAY, 2 * HOUR_S), user="ada")


def test_nothing_yet(cli: Cli) -> None:
    ran = cli("cost")
    assert (ran.code, ran.err) == (0, "")
    assert "No run has cost anything" in ran.out
    assert cli("cost", "--json").json["lines"] == []
    assert cli("cost", "--csv").out.startswith("what,name,outcome")


def test_the_table(cli: Cli, put: Put) -> None:
    three(put)
    ran = cli("cost")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].split() == (
        "RUN NAME ENDED MACHINES HOURS COST PREDICTED DIFFERENCE ON DEMAND SAVED".split()
    )
    assert lines[1].split() == "run-b1 of run-b1 succeeded 1 2.0 7.20 7.20 0.00".split()
    assert lines[2].split() == (
        "run-a2 of run-a2 1 5.0 ~6.70 …so far 40.00 18.70 12.00 64%".split()
    )
    assert lines[3].split() == (
        "run-a1 of run-a1 succeeded 2 2.0 4.80 4.00 +0.80 7.20 2.40 33%".split()
    )
    assert lines[4].split() == "total 4 9.0 ~18.70 …so far 44.00 +0.80 33.10 14.40 44%".split()
    assert "1 machine still up" in ran.out
    assert "$0.70 in all" in ran.out


def test_some_runs_by_the_beginning_of_their_ids(cli: Cli, put: Put) -> None:
    three(put)
    assert [line["what"] for line in cli("cost", "run-b", "--json").json["lines"]] == ["run-b1"]
    both = cli("cost", "run-b", "run-a1", "run-a1", "--json").json
    assert [line["what"] for line in both["lines"]] == ["run-b1", "run-a1"]
    for name, words in (
        ("run-a", "may be any of 2 runs: run-a1, run-a2"),
        ("run-c1", "did you mean"),
        ("zzz", "the newest is run-b1"),
    ):
        ran = cli("cost", name)
        assert (ran.code, ran.out) == (3, "")
        assert words in ran.err


@pytest.mark.parametrize(
    "by",
    "run leg machine project user tag:team provider market instance_type instance-type day"
    " month".split(),
)
def test_every_grouping_sums_up(cli: Cli, put: Put, by: str) -> None:
    three(put)
    found = cli("cost", "--by", by, "--json").json
    assert found["total"]["cost_usd"] == 18.7
    assert sum(Decimal(str(line["cost_usd"])) for line in found["lines"]) == Decimal("18.7")
    assert cli("cost", "--by", by).code == 0
    rows = list(csv.DictReader(io.StringIO(cli("cost", "--by", by, "--csv").out)))
    assert [row["what"] for row in rows] == [line["what"] for line in found["lines"]]


def test_periods(cli: Cli, put: Put) -> None:
    three(put)  # run-a1 on the 13th from 10 to 12 o'clock, run-a2 and run-b1 on the 15th

    def cost(*options: str) -> float:
        total: float = cli("cost", "--json", *options).json["total"]["cost_usd"]
        return total

    assert cost("--since", "2026-11-14") == 13.9
    assert cost("--until", "2026-11-13") == 4.8
    assert cost("--until", "2026-11-12") == 0
    assert cost("--since", "2026-11-13", "--until", "2026-11-13") == 4.8
    assert cost("--since", "1d") == 13.9
    assert cost("--since", "3h") == 3.6
    assert cost("--until", "2026-11-13T11:00") == 1.2
    assert cost("--until", "2026-11-13T12:00+01:00") == 1.2
    found = cli("cost", "--json", "--since", "2026-11-14").json
    assert found["since"] == "2026-11-14T00:00:00+00:00"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--by", "proyect"], 2, "did you mean project?"),
        (["--by", "tag:"], 2, "tag:NAME"),
        (["--since", "last week"], 2, "--since 'last week' is neither a date nor"),
        (["--since", "2026-13-01"], 2, "neither a date"),
        (["--since", "2026-02-30"], 2, "neither a date"),
        (["--until", ""], 2, "neither a date"),
        (["--until", "99999999999d"], 2, "neither a date"),
        (["--since", "9999-12-31", "--until", "9999-12-31"], 2, "neither a date"),
        (["--since", "2026-11-02", "--until", "2026-11-01"], 2, "is not after"),
        (["--json", "--csv"], 2, "exclude each other"),
        (["--json", "--focus", "-"], 2, "exclude each other"),
        (["--store", "ftp://x"], 2, "no kind of store"),
        (["--focus", "/dev/null/x.csv"], 5, "cannot be written"),
        (["--what"], 2, "No such option"),
    ],
)
def test_what_is_wrong(cli: Cli, put: Put, options: list[str], code: int, words: str) -> None:
    ran = cli("cost", *options)
    assert ran.code == code
    assert words in ran.err
    assert "bug" not in ran.err


def test_a_damaged_journal_is_named_and_the_others_are_counted(cli: Cli, put: Put) -> None:
    three(put)
    store.open().replace(f"runs/run-a1/journal/{1:020d}.json", b'{"format":1')
    ran = cli("cost")
    assert ran.code == 4
    assert "total" in ran.out
    assert "run-a1 is not counted: runs/run-a1/journal" in ran.err
    assert "restore it from a backup" in ran.err
    found = cli("cost", "--json")
    assert found.code == 4
    assert found.json["total"]["cost_usd"] == 13.9
    assert [trouble["run"] for trouble in found.json["not_counted"]] == ["run-a1"]
    assert cli("cost", "--csv").code == 4
    assert cli("cost", "run-a2").code == 0


def test_an_impossible_journal_is_damaged_too(cli: Cli, put: Put) -> None:
    three(put)
    opened = store.open()
    data = opened.get(f"runs/run-a1/journal/{1:020d}.json")
    opened.create(f"runs/run-x/journal/{1:020d}.json", data.replace(b'"leg":1', b'"leg":9'))
    ran = cli("cost")
    assert ran.code == 4
    assert "run-x is not counted" in ran.err


@pytest.mark.parametrize(
    ("moment", "why"),
    [
        (b"-5", "the journal says that run-b1-1-m0 of leg 1"),
        (b"99999999999999999", f"runs/run-b1/journal/{1:020d}.json in the store cannot be read"),
    ],
)
def test_moments_that_no_calendar_has(cli: Cli, put: Put, moment: bytes, why: str) -> None:
    three(put)
    opened = store.open()
    key = f"runs/run-b1/journal/{1:020d}.json"
    start = str(NOON_S - 9 * HOUR_S).encode()
    opened.replace(key, opened.get(key).replace(start, moment))
    ran = cli("cost", "--by", "day")
    assert ran.code == 4
    assert f"run-b1 is not counted: {why}" in ran.err
    assert "total" in ran.out


def test_samples_cost_what_they_always_did(cli: Cli) -> None:
    opened = store.open()
    for name in SAMPLES:
        for commit in sample(name):
            key = f"runs/{name}/journal/{commit.number:020d}.json"
            assert opened.create(key, journal.encoded(commit))
    found = {line["what"]: line for line in cli("cost", "--json").json["lines"]}
    assert set(found) == set(SAMPLES) - {"abandoned"}
    for name, line in found.items():
        machines = Decimal(str(line["cost_usd"])) - Decimal(str(line["estimated_usd"]))
        if name == "queued":  # its machines were at another cloud than the store
            machines -= Decimal(str(line["store_usd"]))
        if name == "metered":
            assert line["store_usd"] == 2.97404  # of it 0.002589 are estimated
            machines -= Decimal("2.971451")
        if not any(b'estimated":true' in journal.encoded(commit) for commit in sample(name)):
            assert machines * 10**6 == FOLDED[name][3]


def test_what_the_store_costs_is_said(cli: Cli) -> None:
    opened = store.open()
    for commit in sample("metered"):
        key = f"runs/metered/journal/{commit.number:020d}.json"
        assert opened.create(key, journal.encoded(commit))
    told = " ".join(cli("cost").out.split())
    assert "$2.9740 of it is for the store: requests, traffic between regions" in told
    assert "Left in the store when runs were closed: 98GB, $2.24 a month" in told
    assert "kept, leg 1 of metered" in cli("cost", "--by", "machine").out


def test_focus(cli: Cli, put: Put, tmp_path: Path) -> None:
    three(put)
    path = tmp_path / "focus.csv"
    ran = cli("cost", "--focus", str(path))
    assert (ran.code, ran.out) == (0, "")
    assert "written: " in ran.err
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert tuple(rows[0]) == focus.COLUMNS
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("18.7")
    printed = cli("cost", "--focus", "-")
    assert printed.out == path.read_text()
    assert cli("cost", "--focus", str(path), "--json").json["total"]["cost_usd"] == 18.7
    cli("cost", "--focus", str(path), "--since", "2026-11-14", "run-a")
    some = cli("cost", "--focus", "-", "--since", "2026-11-14", "run-b")
    assert {row["x_RunId"] for row in csv.DictReader(io.StringIO(some.out))} == {"run-b1"}


def test_budgets_stand_below(cli: Cli, put: Put, home: Path) -> None:
    three(put)
    (home / "budgets.yaml").write_text(
        "projects:\n  nlp: {month: $12}\ndefault: {month: $7, what: warn}\n"
    )
    ran = cli("cost", "--by", "project")
    assert ran.code == 0
    below = ran.out[ran.out.index("BUDGET 2026-11") :].splitlines()
    assert below[1].split()[:4] == ["(none)", "7.00", "7.20", "103%"]
    assert "over by $0.20; it only warns" in below[1]
    assert below[2].split()[:4] == ["nlp", "12.00", "11.50", "96%"]
    assert "nearly spent" in below[2]
    found = cli("cost", "--json").json["budgets"]
    assert [(b["project"], b["crossed_percent"]) for b in found] == [
        (None, [50, 80, 100]),
        ("nlp", [50, 80]),
    ]
    assert "BUDGET" not in cli("cost", "run-b1").out
    (home / "budgets.yaml").write_text("projects:\n  nlp: {month: lots}\n")
    ran = cli("cost")
    assert ran.code == 4
    assert "line 2: projects.nlp.month: 'lots' is not an amount" in ran.err


def test_the_example_store_is_what_its_tool_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    sys.path.insert(0, str(ROOT / "tools"))
    import example_store  # type: ignore[import-not-found]

    monkeypatch.setattr(example_store, "FOLDER", tmp_path / "store")
    example_store.main()

    def content(folder: Path) -> dict[str, bytes]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    assert content(tmp_path / "store") == content(ROOT / "examples" / "store")
    journals = (data for path, data in content(tmp_path / "store").items() if "journal" in path)
    assert json.loads(next(journals))["format"] == FORMAT


def test_sustained_use_of_one_run_counts_what_others_used_before(
    cli: Cli, put: Put, home: Path
) -> None:
    """NOON_S is on the 15th: seven days before it, and seven after those."""
    lasting = replace(WAY, sustained=((0, 10_000), (2_500, 5_000)))
    put("run-a", NOON_S - 14 * 24 * HOUR_S, (lasting, 7 * 24 * HOUR_S))
    put("run-b", NOON_S - 7 * 24 * HOUR_S, (lasting, 7 * 24 * HOUR_S), project="nlp")
    (home / "budgets.yaml").write_text("projects:\n  nlp: {month: $1000}\n")
    (line,) = cli("cost", "run-b", "--json").json["lines"]
    whole = 7 * 24 * 3.6
    off = (14 - 7.5) * 24 * 3.6 / 2  # what is more than a quarter of the month, at half the price
    assert line["sustained_usd"] == pytest.approx(off)
    assert line["cost_usd"] == pytest.approx(whole - off)
    told = cli("cost", "--json").json
    assert told["total"]["cost_usd"] == pytest.approx(2 * whole - off)
    # Controllers buy nothing on it.
    assert told["budgets"][0]["spent_usd"] == pytest.approx(whole)
    assert f"${off:,.2f} was taken off for sustained use" in cli("cost").out


def test_the_month_ahead_and_what_is_unusual(cli: Cli) -> None:
    store = str(Path(__file__).parents[2] / "examples" / "store")
    asked = ("cost", "--store", store, "--forecast", "--unusual")
    ran = cli(*asked)
    assert "likely by its end" in ran.out
    assert "No run cost 3 times" in ran.out
    found = cli(*asked, "--json").json
    assert found["forecast"]["low_usd"] <= found["forecast"]["likely_usd"]
    assert found["unusual"] == []
    assert "forecast" not in cli("cost", "--store", store, "--json").json


def test_units_idle_time_and_charges_of_the_example(cli: Cli) -> None:
    there = ("--store", str(ROOT / "examples" / "store"))
    rules = str(ROOT / "examples" / "team" / "chargeback.yaml")
    told = cli("cost", *there, "--units", "--idle", "--chargeback", rules, "--json").json
    tokens = {one["what"]: one["unit_usd"] for one in told["units"] if "tokens" in one["unit"]}
    lines = {line["what"]: line for line in told["lines"]}
    first = "run-0199f3a1c2d4-5e1d9c"
    assert tokens[first] == pytest.approx(lines[first]["cost_usd"] / 590)
    ada = next(one for one in told["idle"] if one["what"] == "ada")
    assert ada["idle_hours"] == pytest.approx(5 * 7 / 60, abs=1e-4)  # five legs of 7 minutes
    charged = sum(one["charged_usd"] for one in told["chargeback"]["projects"])
    support = sum(one["shared_usd"]["support"] for one in told["chargeback"]["projects"])
    assert charged == pytest.approx(told["total"]["cost_usd"] + support)
    project = cli("cost", *there, "--by", "project", "--idle", "--json").json["idle"]
    assert {one["what"] for one in project} == {"nlp", "vision"}
    day = cli("cost", *there, "--by", "day", "--idle").out  # what divides runs, too
    assert any(line.startswith("DAY") and "IDLE" in line for line in day.splitlines())


def test_services_have_a_unit_cost_for_all_of_their_time_alone(put: Put, cli: Cli) -> None:
    for number, hours_ago in ((1, 60), (2, 6)):
        put(f"chat-r{number}", NOON_S - hours_ago * HOUR_S, (WAY, HOUR_S), tags={"service": "chat"})
    hour = Kept(first=0, load=[1.0], requests=[1000.0])
    store.open().create(places.load("chat", 1), msgspec.json.encode(hour))
    (line,) = cli("cost", "--units", "--json").json["units"]
    assert (line["unit"], line["done"], line["runs"]) == ("1,000 requests", 1000, 2)
    for part in (("--since", "2026-11-15"), ("--until", "2026-11-14"), ("chat-r1",)):
        assert cli("cost", *part, "--units", "--json").json["units"] == []
        assert "Services are left out" in cli("cost", *part, "--units").out
    assert "left out" not in cli("cost", "--units").out


def test_what_is_besides_the_table_has_no_csv(cli: Cli) -> None:
    ran = cli("cost", "--units", "--csv")
    assert ran.code == 2
    assert "of the first table alone" in ran.err
    assert "not a length of time" in cli("cost", "--unread", "soon").err
    assert "cannot be read" in cli("cost", "--chargeback", "none.yaml").err


def test_a_few_runs_are_not_charged_what_all_share(put: Put, cli: Cli) -> None:
    put("run-a", NOON_S - 5 * HOUR_S, (WAY, HOUR_S), project="nlp")
    rules = str(ROOT / "examples" / "team" / "chargeback.yaml")
    ran = cli("cost", "run-a", "--chargeback", rules)
    assert (ran.code, ran.out) == (2, "")
    assert "--chargeback without RUN" in ran.err


def test_warnings_that_are_due_are_sent_once(home: Path, put: Put, cli: Cli) -> None:
    put("run-a1", NOON_S - 5 * HOUR_S, (WAY, HOUR_S), project="nlp")
    assert "does not say where warnings go" in cli("cost", "--warn", "test").err
    with LocalHttp() as server:
        server.on("/hook", "ok")
        home.mkdir(exist_ok=True)
        (home / "hook").write_text(server.url + "/hook")
        (home / "budgets.yaml").write_text(
            f"tell: {{webhook: 'file:{home}/hook'}}\nprojects:\n  nlp: {{month: $2}}\n"
        )
        assert cli("cost", "--warn", "test").code == 0
        assert cli("cost", "--warn", "due").code == 0
        assert cli("cost", "--warn", "due").code == 0
        texts = [request.json["text"] for request in server.requests]
    assert len(texts) == 2
    assert "A trial" in texts[0]
    assert "nlp has spent 180% of 2026-11" in texts[1]
    (home / "hook").unlink()
    ran = cli("cost", "--warn", "test")
    assert ran.code != 0
    assert "cannot be read" in ran.err
