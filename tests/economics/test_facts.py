"""The figures: each dated and sourced, doubtful ones marked, and compiled by a command."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, home
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.economics import facts
from tradewind.economics.build import build
from tradewind.economics.facts import TABLES, day_of

__all__ = ["cli", "home"]

HEADER = "category,item,low,typical,high,unit,region,as_of,source,evidence,quality,note\n"
GOOD = "card,H100,25000,27500,30000,USD,us,2026-05,somebody,seen,,\n"


def written(folder: Path, *rows: str) -> Path:
    (folder / "own_hardware.csv").write_text(HEADER + "".join(rows))
    return folder


@pytest.mark.parametrize("name", TABLES)
def test_every_figure_has_a_date_and_a_source(name: str) -> None:
    table = facts.table(name)
    assert len(table.rows) > 20
    made = date.fromisoformat(table.made_at)
    for row in table.rows:
        assert row["source"], row
        assert day_of(row["as_of"]) <= made
        assert row["evidence"] in facts.EVIDENCE
        if row["evidence"] == "recall":
            assert row["doubt"], row
        if (made - day_of(row["as_of"])).days > 3 * 366:
            assert row["doubt"], row
    assert facts.decode(facts.encode(table), "again") == table


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-09-19", date(2026, 9, 19)), ("2026-09", date(2026, 9, 1)),
        ("2026", date(2026, 1, 1)),
        ("2025H2", date(2025, 7, 1)), ("2017-22", date(2022, 1, 1)), ("2005-06", date(2005, 6, 1)),
    ],
)  # fmt: skip
def test_dates_of_all_kinds_are_read(text: str, day: date) -> None:
    assert day_of(text) == day


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-02-30", "26"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="as_of"):
        day_of(text)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("card,X,1,2,3,USD,us,2026,,seen,,\n", "no source"),
        ("card,X,1,2,3,USD,us,2026,me,guessed,,\n", "evidence"),
        ("card,X,3,2,1,USD,us,2026,me,seen,,\n", "order"),
        ("card,X,a,2,3,USD,us,2026,me,seen,,\n", "not a number"),
        ("card,X,1,2,3,USD,us,2027,me,seen,,\n", "to come"),
        ("card,X,1,2,3,USD,us,2026\n", "cells"),
        (GOOD, "the same as in line 2"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, row: str, why: str) -> None:
    good = [GOOD.replace("H100", f"H{n}") if n else GOOD for n in range(3)]
    made = build(written(tmp_path, *good, row), "own", made_on=date(2026, 11, 18))
    assert len(made.rows) == 3
    assert "line 5" in made.refused[0]
    assert why in made.refused[0]


def test_what_is_doubtful_is_marked(tmp_path: Path) -> None:
    rows = [
        GOOD,
        "card,A,1,2,3,USD,us,2026,me,recall,,\n",
        "card,B,1,2,3,USD,us,2020,me,seen,,\n",
        "card,C,1,2,3,USD,us,2026,me,seen,a guess,\n",
    ]
    made = build(written(tmp_path, *rows), "own", made_on=date(2026, 11, 18))
    assert [row["doubt"] for row in made.rows] == ["", "from memory", "of 2020", "a guess"]


def test_a_table_that_is_mostly_wrong_replaces_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="most of it"):
        build(written(tmp_path, GOOD, "x\n", "y\n"), "own", made_on=date(2026, 11, 18))


def test_a_name_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(NotFound) as error:
        facts.table("own").one(category="pue", item="Mars")
    assert "Google fleet" in (error.value.hint or "")


def test_the_command_shows_tables_and_figures(cli: Cli) -> None:
    tables = cli("catalog", "economics", "--json").json
    assert {one["table"] for one in tables} == set(TABLES)
    rows = cli("catalog", "economics", "own", "server_price", "h100", "--json").json
    assert any(row["typical"] == 285_000 for row in rows)
    assert all(row["source"] and row["as_of"] for row in rows)
    shown = cli("catalog", "economics", "own", "pue")
    assert "Google fleet" in shown.out
    doubtful = cli("catalog", "economics", "factors", "--doubtful")
    assert doubtful.code == 3
    assert cli("catalog", "economics", "ovn").code == 3


def test_the_command_compiles(cli: Cli, tmp_path: Path) -> None:
    lone = cli("catalog", "economics", "--from", str(tmp_path))
    assert lone.code == 2
    assert "--out" in lone.err
    missing = cli("catalog", "economics", "--from", str(tmp_path), "--out", str(tmp_path))
    assert missing.code == 5
    assert "own_hardware.csv" in missing.err
