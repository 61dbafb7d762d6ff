"""What machines are called, and what is read back from it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.lambda_cloud.machines import way
from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.model.run import Request
from tradewind.providers.lambda_cloud import names

OWNER = names.owner_of("s3://bucket/prefix")


def request(run_id: str, leg: int = 1) -> Request:
    return Request(launch_id=f"{run_id}-{leg}", run_id=run_id, leg=leg, way=way(), hard_stop_s=60)


@settings(max_examples=60)
@given(
    st.text("ab09._-", max_size=16).map(lambda text: f"x{text}y"),
    st.integers(1, 999),
    st.integers(0, 9),
    st.integers(1_577_836_800, 3_700_000_000),
)
def test_names_are_read_back(name: str, leg: int, rank: int, at_s: int) -> None:
    asked = request(clock.new_id(name), leg)
    made = names.made(OWNER, asked, rank, at_s)
    assert len(made.text) <= 64
    assert names.parsed(made.text) == made
    assert names.of_machine(made.machine_id) == made
    assert made.launch_id == asked.launch_id
    assert made.machine_id.startswith("lambda-")


@pytest.mark.parametrize("nodes", [1, 10, 11, 100])
def test_the_longest_name_fits_and_a_longer_one_is_refused(nodes: int) -> None:
    most = names.longest(nodes)
    made = names.made(OWNER, request(clock.new_id("n" * most), 999), nodes - 1, 1_800_000_000)
    assert len(made.text) == 64
    with pytest.raises(InvalidValue, match="cannot be named"):
        names.made(OWNER, request(clock.new_id("n" * (most + 1)), 999), nodes - 1, 1_800_000_000)


@given(st.text(max_size=70))
def test_any_other_name_is_nobodys(text: str) -> None:
    found = names.parsed(text)
    assert found is None or found.text == text


def test_owners_differ_by_their_store() -> None:
    assert names.owner_of("s3://bucket/prefix/") == OWNER
    assert names.owner_of("s3://bucket") != OWNER
    assert len(OWNER) == 8
