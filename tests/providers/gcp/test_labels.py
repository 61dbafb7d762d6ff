"""What stands in a machine's name and labels can be read back, or is not cut silently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.providers.conformance import Place
from tests.providers.gcp.machines import way
from tradewind.model.run import Request
from tradewind.providers.gcp import labels

OWNER = "0123abcd"


def asked(run_id: str, leg: int = 1, nodes: int = 1) -> Request:
    made = Place(None, way()).request(leg=leg, nodes=nodes, run_id=run_id)  # type: ignore[arg-type]
    return replace(made, launch_id=f"{run_id}-{leg}")


RUN_IDS = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,40}[A-Za-z0-9])?", fullmatch=True)


@given(RUN_IDS, st.integers(1, 9999), st.integers(0, 255))
def test_a_name_says_whose_machine_it_is(run_id: str, leg: int, rank: int) -> None:
    name = labels.made(OWNER, asked(run_id, leg, 256), rank)
    assert len(name.text) <= 63
    found = labels.parsed(name.text)
    assert found == name
    assert found is not None
    assert (found.owner, found.leg, found.rank) == (OWNER, leg, rank)
    assert found.run_id in (run_id, None)
    if len(run_id) <= 20 and run_id.islower() and "q" not in run_id:
        assert found.run_id == run_id
    parts = labels.parted(labels.machine_id("europe-west4-b", name.text))
    assert parts == ("europe-west4-b", name)


@given(RUN_IDS)
def test_labels_are_such_as_google_takes(run_id: str) -> None:
    request = asked(run_id, 3)
    made = labels.labels(OWNER, request)
    assert all(labels.is_label(value) for value in made.values()), made
    stamps = labels.stamps(request)
    assert labels.run_of(made, stamps) == (run_id, f"{run_id}-3")
    told = labels.run_of(made, {})  # where nobody tells the metadata
    assert told in ((run_id, f"{run_id}-3"), None)


def test_what_does_not_fit_is_a_hash_and_whole_in_the_metadata() -> None:
    long = "a-very-long-name-of-a-run-that-goes-on-and-on-0199f0c2a4b7-5e1d9c"
    name = labels.made(OWNER, asked(long), 0)
    assert name.run_id is None
    assert name.text == labels.made(OWNER, asked(long), 0).text
    assert name.text != labels.made(OWNER, asked(long[:-1] + "d"), 0).text
    assert labels.run_of(labels.labels(OWNER, asked(long)), {}) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "tw-", "box", "tw-0123abcd", "tw-0123abcd-run-1", "tw-0123abcd-run-01-0"),
        *("xtw-0123abcd-run-1-0", "tw-0123ABCD-run-1-0", f"tw-0123abcd-{'r' * 60}-1-0"),
    ],
)
def test_what_others_call_their_machines_is_not_ours(text: str) -> None:
    assert labels.parsed(text) is None
    assert labels.parted(f"gcp-us-central1-a-{text}") is None


def test_longest_name_of_a_run_leaves_room() -> None:
    most = labels.longest(8)
    run_id = f"{'n' * most}-0199f0c2a4b7-5e1d9c"
    assert labels.made(OWNER, asked(run_id, 999, 8), 7).run_id == run_id
    assert labels.made(OWNER, asked("n" + run_id, 999, 8), 7).run_id is None


def test_request_ids_are_the_same_for_whoever_asks_again_and_elsewhere_others() -> None:
    one = asked("run-1")
    ids = {
        labels.request_id(OWNER, one),
        labels.request_id("ffffffff", one),
        labels.request_id(OWNER, asked("run-1", 2)),
        labels.request_id(OWNER, replace(one, way=way(zone="us-central1-b"))),
        labels.request_id(OWNER, one, "policy"),
    }
    assert len(ids) == 5
    assert labels.request_id(OWNER, one) in ids
    assert all(len(each) == 36 for each in ids)
