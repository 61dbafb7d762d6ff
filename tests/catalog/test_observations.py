from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.catalog.small import NOW, row, small
from tradewind.catalog import files
from tradewind.catalog.observations import MOST, Observations, decode, encode, observed
from tradewind.model import Observation

OFFER = small(row("aws", zone="a", instance_type="p5", on_demand=55)).table.offer(0)


def seen(
    *, available: bool = True, zone: str = "a", minutes_ago: int = 0, **more: Any
) -> Observation:
    at = NOW - timedelta(minutes=minutes_ago)
    fields: dict[str, Any] = {
        "provider": "aws", "region": "us-east-1", "zone": zone, "instance_type": "p5",
        "market": "on_demand", "available": available, "seen_at": at, "expires_at": at,
        "source": "test",
    }  # fmt: skip
    return observed(Observation(**(fields | more)))


def current(*observations: Observation) -> Observations:
    return decode(encode(observations), NOW)


def test_they_expire() -> None:
    assert current(seen(minutes_ago=5 * 60)).of(OFFER, "on_demand")
    assert current(seen(minutes_ago=6 * 60)).of(OFFER, "on_demand") is None
    assert current(seen(available=False, minutes_ago=59)).of(OFFER, "on_demand")
    assert current(seen(available=False, minutes_ago=60)).of(OFFER, "on_demand") is None


def test_the_newest_counts_whatever_the_order() -> None:
    old, new = seen(minutes_ago=30), seen(available=False, minutes_ago=10)
    for order in ((old, new), (new, old)):
        found = current(*order).of(OFFER, "on_demand")
        assert found is not None
        assert found.available is False


def test_of_zone_and_region_the_later_word_counts() -> None:
    for later, earlier in (("a", ""), ("", "a")):
        both = current(seen(zone=later, minutes_ago=1), seen(zone=earlier, minutes_ago=2))
        found = both.of(OFFER, "on_demand")
        assert found is not None
        assert found.zone == later
    assert current(seen(zone="")).of(OFFER, "on_demand")
    assert current(seen(zone="b")).of(OFFER, "on_demand") is None
    assert current(seen(zone="a")).of(OFFER, "spot") is None


def test_a_torn_line_costs_only_itself() -> None:
    good = encode([seen()])
    naive, odd = good.replace("+00:00", ""), good.replace('"aws"', "[1]")
    text = good + '{"provider": "a\n{"seen_at": 3}\n' + naive + odd + "[" * 100_000
    found = decode(text, NOW)
    assert (len(found.latest), found.unreadable) == (1, 5)


def test_many_may_append(tmp_path: Path) -> None:
    def append(number: int) -> None:
        for part in range(20):
            files.record([seen(zone=f"{number}-{part}")], tmp_path, NOW)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(8)))
    loaded = files.load(folder=tmp_path, now=NOW)
    assert loaded.observations is not None
    assert len(loaded.observations.latest) == 160
    assert loaded.observations.unreadable == 0


def test_the_expired_are_swept_out(tmp_path: Path) -> None:
    path = tmp_path / "observations.jsonl"
    path.write_text(encode([seen(minutes_ago=20_000)]) * 6_000 + "junk\n")
    files.record([seen()], tmp_path, NOW)
    assert len(path.read_text().splitlines()) == 1
    path.write_bytes(b"\xff\xfe\n" + path.read_bytes())
    loaded = files.load(folder=tmp_path, now=NOW)
    assert loaded.observations is not None
    assert (len(loaded.observations.latest), loaded.observations.unreadable) == (1, 1)


def test_what_has_expired_is_remembered_for_some_days(tmp_path: Path) -> None:
    path = tmp_path / "observations.jsonl"
    path.write_text(encode([seen(minutes_ago=9_000)]) * 6_000)
    files.record([seen(minutes_ago=600)], tmp_path, NOW)
    found = files.load(folder=tmp_path, now=NOW).observations
    assert found is not None
    assert not found.latest
    (several,) = found.recent.values()
    assert len(several) == MOST
    assert several[-1].seen_at == NOW - timedelta(minutes=600)
