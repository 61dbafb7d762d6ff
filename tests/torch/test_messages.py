"""What ranks send each other, between real processes; and what one of them may send instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.checkpoint.processes import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After both ranks have been through all cases."""
    made = tmp_path_factory.mktemp("ranks")
    run(*(["tests.torch.messaging", str(rank), str(made)] for rank in range(2)))
    return made


def ranks(case: str, folder: Path) -> list[str]:
    """What came of it on each."""
    return [(folder / f"{case}.{rank}").read_text() for rank in range(2)]


def test_messages_of_all_lengths_arrive(folder: Path) -> None:
    assert ranks("lengths", folder) == ["well", "well"]
    assert ranks("one_to_one", folder) == ["well", "well"]


def test_a_message_that_is_too_long_stops_all_ranks(folder: Path) -> None:
    for said in ranks("too_long", folder):
        assert said.startswith("BadMessage: rank 1 sent a message of 2,0")
        assert "the limit is 1,000" in said
        assert "hint: " in said


def test_a_length_that_cannot_be_reserves_nothing(folder: Path) -> None:
    said, _ = ranks("no_length", folder)
    assert said.startswith("BadMessage: rank 1 sent a message of -4,611,686,018,427,387,904 bytes")


@pytest.mark.parametrize("case", ["gathers_pickle", "broadcasts_pickle", "sends_pickle"])
def test_a_pickle_of_another_rank_is_refused_and_runs_nothing(case: str, folder: Path) -> None:
    said, _ = ranks(case, folder)
    assert said.startswith("BadMessage: rank 1 sent ")
    assert "bytes that are not a message" in said
    assert not (folder / "ran").exists()


def test_a_pickle_inside_a_stages_state_is_refused_and_runs_nothing(folder: Path) -> None:
    said, _ = ranks("stage_pickles", folder)
    assert said.startswith("BadMessage: rank 1 sent state that cannot be read")
    assert not (folder / "ran").exists()


def test_state_that_one_stage_cannot_save_stops_all_of_them(folder: Path) -> None:
    for said in ranks("stage_cannot", folder):
        assert said.startswith("InvalidValue: rank 1: the state of model holds more than numbers")
        assert "hint: give an object" in said
