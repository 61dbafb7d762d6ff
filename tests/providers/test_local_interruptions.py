"""When spot machines can be had and are taken: pure, and from real traces."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tradewind.base.errors import BadFile, InvalidValue, NoAccess, NotFound
from tradewind.providers.base import Refused
from tradewind.providers.local.interruptions import Chaos, Replay
from tradewind.providers.local.trace import Trace, parse, read

HEAD = "trace_id,zone,nodes,gap_seconds,n_ticks,rle\n"
ROW = {"trace_id": "t", "zone": "z", "nodes": "4", "gap_seconds": "10", "rle": "4x2 1x1 0x3 2x4"}
TRACE = parse(ROW)


def table(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "traces.csv"
    path.write_text(HEAD + "\n".join(lines) + "\n")
    return path


def test_a_trace_is_what_was_measured() -> None:
    assert TRACE.length_s == 100
    assert [TRACE.count(10.0 * tick + 5) for tick in range(10)] == [4, 4, 1, 0, 0, 0, 2, 2, 2, 2]
    assert TRACE.count(0) == TRACE.count(100) == TRACE.count(19.9) == TRACE.count(-85) == 4
    assert TRACE.count(20) == 1


@pytest.mark.parametrize("at_s", [-130.0, 0.0, 3.5, 20.0, 25.0, 30.0, 59.9, 60.0, 99.0, 1234.0])
@pytest.mark.parametrize("wanted", [1, 2, 3, 4])
def test_how_long_it_lasts_is_found_by_walking_it(at_s: float, wanted: int) -> None:
    walked = 0.0
    while TRACE.count(at_s + walked + 1e-9) >= wanted:
        walked += 0.05
    assert TRACE.until_below(wanted, at_s) == pytest.approx(walked, abs=0.051)


def test_what_never_ends_and_what_never_begins() -> None:
    assert Trace("t", "z", 1, (1, 1), (5.0, 9.0)).until_below(1, 3) is None
    assert Trace("t", "z", 1, (0,), (5.0,)).until_below(1, 3) == 0
    # It goes on over the end, into the next round.
    assert Trace("t", "z", 1, (1, 0, 1), (5.0, 6.0, 10.0)).until_below(1, 8) == 7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rle": ""}, "no rle"),
        ({"rle": "1x"}, "not VALUExCOUNT"),
        ({"rle": "1x2 x3"}, "not VALUExCOUNT"),
        ({"rle": "1x2x3"}, "not VALUExCOUNT"),
        ({"rle": "-1x2"}, "not VALUExCOUNT"),
        ({"rle": "²x2"}, "not VALUExCOUNT"),
        ({"rle": "1x0"}, "'1x0'"),
        ({"rle": "5x1"}, "where 4 were tried"),
        ({"gap_seconds": "0"}, "gap_seconds"),
        ({"gap_seconds": "-3"}, "gap_seconds"),
        ({"gap_seconds": "nan"}, "gap_seconds"),
        ({"nodes": "1.5"}, "nodes"),
        ({"nodes": "many"}, "nodes"),
        ({"n_ticks": "11"}, "10 ticks"),
        ({"zone": ""}, "no zone"),
        ({"trace_id": ""}, "no trace_id"),
    ],
)
def test_malformed_traces(change: dict[str, str], words: str, tmp_path: Path) -> None:
    row = {**ROW, "n_ticks": "", **change}
    with pytest.raises(InvalidValue, match=words):
        parse(row)
    path = table(tmp_path, ",".join(row[name] for name in HEAD.strip().split(",")))
    with pytest.raises(BadFile, match=f"line 2: .*{words}"):
        read(path, row["trace_id"] or row["zone"])


def test_traces_are_named_by_id_or_by_zone(tmp_path: Path) -> None:
    path = table(tmp_path, "a,z1,1,10,3,1x3", "b,z2,1,10,,1x3", "c,z2,1,20,,0x1 1x1")
    assert read(path, "z1").trace_id == "a"
    assert read(path, "c").length_s == 40
    with pytest.raises(InvalidValue, match="2 traces of zone z2") as unclear:
        read(path, "z2")
    assert unclear.value.hint == "name one: b, c"
    with pytest.raises(NotFound, match="no zone 'z3'") as unknown:
        read(path, "z3")
    assert unknown.value.choices == ("z1", "z2")
    with pytest.raises(NoAccess):
        read(tmp_path / "none.csv", "z1")


def test_a_replay_queues_the_ranks_and_keeps_its_speed() -> None:
    replay = Replay({"z": TRACE}, 1000.0, 5.0, 2.0, 30.0)
    # Two seconds after it began the trace is at 9 s: 4 until 20 s, 1 until 30 s.
    three = ["m0", "m1", "m2"]
    assert replay.lives("z", three, 1002.0) == (1012.5, 1007.5, 1007.5)
    six = replay.lives("z", [f"m{n}" for n in range(6)], 1002.0)
    assert six == (1012.5, *[1007.5] * 5)
    assert replay.lives("z", ["m0"], 1010.0) == (1012.5,)
    with pytest.raises(Refused, match="1 of 3"):
        replay.lives("z", three, 1010.0)
    with pytest.raises(Refused, match="0 of 1"):
        replay.lives("z", ["m0"], 1014.0)
    assert replay.lives("elsewhere", three, 1014.0) == (None, None, None)


def test_chaos_is_the_same_for_everyone_and_as_long_as_was_said() -> None:
    names = [f"m{n}" for n in range(4000)]
    lives = Chaos(600.0, 30.0, 1).lives("z", names, 0.0)
    assert lives == Chaos(600.0, 30.0, 1).lives("z", names, 0.0)
    assert lives[:9] == Chaos(600.0, 30.0, 1).lives("z", names[:9], 0.0)
    assert lives != Chaos(600.0, 30.0, 2).lives("z", names, 0.0)
    assert statistics.mean(lives) == pytest.approx(600, rel=0.05)
    assert statistics.median(lives) == pytest.approx(600 * 0.6931, rel=0.05)
    assert min(lives) >= 0


def test_settings_that_cannot_be() -> None:
    for mean in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidValue):
            Chaos(mean, 0.0, 1)
    for speed in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidValue):
            Replay({}, 0.0, 0.0, speed, 0.0)
    for notice in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidValue):
            Chaos(1.0, notice, 1)
        with pytest.raises(InvalidValue):
            Replay({}, 0.0, 0.0, 1.0, notice)


def test_what_is_wanted_back_is_not_handed_out() -> None:
    trace = Trace("t", "z", 1, (1, 0), (100.0, 200.0))
    replay = Replay({"z": trace}, 0.0, 0.0, 10.0, 2.0, least_s=2.0)
    assert replay.lives("z", ["m"], 7.9) == (10.0,)
    with pytest.raises(Refused, match="takes its spot machines back"):
        replay.lives("z", ["m"], 8.1)
