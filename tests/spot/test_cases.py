"""From series to cases: what is read, cut and grouped, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.spot import cases, compare, fit
from tradewind.spot.series import read

HEAD = "trace_id,kind,provider,zone,accelerator,nodes,start_utc,gap_seconds,n_ticks,rle\n"
A = "a,availability,aws,z1,v100,2,2023-02-15T00:00:00Z,60,10,0x3 1x2 2x5"
B = "b,availability,aws,z2,v100,2,2023-02-15T00:02:00Z,60,12,2x12"
C = "c,preemption,aws,z3,v100,2,2023-02-15T00:00:00Z,60,4,2x4"
D = "d,availability,gcp,z4,v100,2,2023-02-15T00:00:00Z,60,4,2x4"


def table(tmp_path: Path, *lines: str, head: str = HEAD, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_text(head + "\n".join(lines) + "\n")
    return path


def test_series_are_read_by_kind(tmp_path: Path) -> None:
    path = table(tmp_path, A, B, C)
    assert [s.trace_id for s in read(path, kinds=["availability"])] == ["a", "b"]
    assert [s.trace_id for s in read(path)] == ["a", "b", "c"]
    first = read(path)[0]
    assert first.up(1).tolist() == [False] * 3 + [True] * 7
    assert first.up(2).tolist() == [False] * 5 + [True] * 5
    with pytest.raises(NotFound, match="no series of kind x"):
        read(path, kinds=["x"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (A.replace("1x2", "1y2"), "line 2.*not VALUExCOUNT"),
        (A.replace("1x2", "1x0"), "line 2"),
        (A.replace("1x2", "3x2"), "where 2 were tried"),
        (A.replace(",10,", ",11,"), "n_ticks is 11"),
        (A.replace(",60,", ",0,"), "gap_seconds"),
        (A.replace(",60,", ",1.5,"), "whole seconds"),
        (A.replace("2023-02-15T", "soon"), "no time"),
        (A.replace("a,", ",", 1), "no trace_id"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(BadFile, match=words):
        read(table(tmp_path, line))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a,60,10,3.06,-1x10", "line 2.*cannot be"),
        ("a,60,10,3.06,1.5y10", "PRICExCOUNT"),
        ("a,60,10,,1x10", "on_demand"),
        ("a,60,9,3.06,1x9", "its prices 9 of 60 s"),
        ("a,30,10,3.06,1x10", "its prices 10 of 30 s"),
    ],
)
def test_bad_prices_are_named(tmp_path: Path, line: str, words: str) -> None:
    head = "trace_id,gap_seconds,n_ticks,on_demand,rle\n"
    prices = table(tmp_path, line, head=head, name="p.csv")
    with pytest.raises(BadFile, match=words):
        read(table(tmp_path, A), prices)


def test_windows_are_evenly_spaced_to_the_last_that_fits() -> None:
    assert cases.starts(100, 40, 4) == [0, 20, 40, 60]
    assert cases.starts(100, 40, 1) == [0]
    assert cases.starts(40, 40, 3) == [0, 0, 0]
    assert cases.starts(39, 40, 3) == []


def test_a_window_ends_an_hour_after_the_deadline() -> None:
    assert cases.Config(3600, 7200, 60).window(195) == 56  # ⌈10,800 / 195⌉


def test_groups_overlap_and_are_aligned(tmp_path: Path) -> None:
    found = cases.groups(read(table(tmp_path, A, B, D), kinds=["availability"]), 1)
    assert [g.zones for g in found] == [("z1", "z2")]
    # b starts two ticks later: those of a are left out.
    assert found[0].up.tolist() == [[False] + [True] * 7, [True] * 8]


def test_subsets_are_seeded(tmp_path: Path) -> None:
    lines = [A.replace("a,", f"a{n},", 1).replace("z1", f"z{n}") for n in range(6)]
    whole = cases.groups(read(table(tmp_path, *lines)), 1)[0]
    found = [p.zones for p in cases.subsets(whole, random.Random(7))]
    assert [len(zones) for zones in found] == [6, 2, 2, 3, 3, 5, 5]
    assert found == [p.zones for p in cases.subsets(whole, random.Random(7))]


@pytest.mark.parametrize(
    ("work", "deadline", "overhead", "words"),
    [
        (0, 10, 0, "no work"),
        (10, 9, 0, "too short"),
        (10, 15, 6, "too short"),
        (10, 20, -1, "less"),
    ],
)
def test_a_task_that_cannot_be_done_is_refused(
    work: int, deadline: int, overhead: int, words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        cases.Config(work, deadline, overhead)


def test_series_that_are_too_short_are_skipped_and_said(tmp_path: Path) -> None:
    long = A.replace(",10,", ",200,").replace("2x5", "2x195")
    found = [cases.single(s, 1) for s in read(table(tmp_path, long, B))]
    config = cases.Config(1800, 3600, 60)
    result = compare.compare(found, [config], 3, ["greedy", "on-demand"]).document()
    assert result["cases"] == 3
    assert result["skipped"] == ["b: 0 h are too short for a deadline of 1 h"]
    with pytest.raises(InvalidValue, match="no series is long enough"):
        compare.compare(found[1:], [config], 3, ["greedy"])


def test_too_little_to_learn_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="too little"):
        fit.fit(read(table(tmp_path, A)), "now")


def line(name: str, start: str, rle: str) -> str:
    return f"{name},availability,aws,z{name},v100,1,{start},600,,{rle}"


def test_series_in_which_nothing_can_change_teach_nothing(tmp_path: Path) -> None:
    start = "2023-02-15T00:00:00Z"
    moments = [line(f"m{n}", start, "1x1") for n in range(200)]
    with pytest.raises(InvalidValue, match="too little"):
        fit.fit(read(table(tmp_path, *moments)), "now")
    found = fit.fit(read(table(tmp_path, line("a", start, "1x100 0x50 1x50"), *moments)), "now")
    assert list(found.sources) == ["a"]


def test_zones_are_watched_together_at_the_same_time(tmp_path: Path) -> None:
    """One is up while the other is down: together they are always up, if they are aligned."""
    rle = " ".join(["1x6 0x6"] * 40)
    late = [line("a", "2023-02-15T00:00:00Z", rle), line("b", "2023-02-15T01:00:00Z", rle)]
    [up] = fit._joined(read(table(tmp_path, *late)), 1, 2)
    assert len(up) == 40 * 12 - 6
    assert up.all()


def test_no_two_groups_have_one_name(tmp_path: Path) -> None:
    start, gaps = "2023-02-15T00:00:00Z", (600, 300)
    lines = [
        f"{zone}{gap}-x,availability,aws,{zone},v100,1,{day},{gap},,1x10"
        for gap in gaps
        for day in (start, "2023-03-15T00:00:00Z", "2023-04-15T00:00:00Z")
        for zone in (f"a{day[6]}", f"b{day[6]}")
    ]
    names = [group.name for group in cases.groups(read(table(tmp_path, *lines)), 1)]
    assert len(set(names)) == len(names) == 6
    assert names[:3] == ["aws v100 x", "aws v100 x 600 s", "aws v100 x 600 s #2"]
