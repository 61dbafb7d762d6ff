"""Every kind of trouble, by figures that show it and by figures just below."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tradewind.model.figures import Figures, Gpu
from tradewind.telemetry import diagnose as module
from tradewind.telemetry.diagnose import Diagnosis, diagnose

GPU = Gpu(
    name="NVIDIA H200",
    busy=0.97,
    memory_busy=0.35,
    memory_used=100 << 30,
    memory_total=141 << 30,
    power_w=640.0,
    limit_w=700.0,
    clock_mhz=1900,
    top_mhz=1980,
)


def figures(**more: Any) -> Figures:
    """A training on a GPU that nothing holds up."""
    known: dict[str, Any] = {
        "device": "cuda:0",
        "step": 1000,
        "steps": 50,
        "window_s": 20.0,
        "up_s": 600.0,
        "step_s": 0.4,
        "data": 0.01,
        "workers": 2,
        "cores": 16,
        "threads": 1,
        "cpu": 1.1,
        "crowded": 0.01,
        "gpu": GPU,
    }
    return Figures(**{**known, **more})


def gpu(**more: Any) -> Gpu:
    return replace(GPU, **more)


def ranks(*each: dict[str, Any]) -> list[Figures]:
    return [
        figures(rank=rank, world=len(each), local=len(each), comm_by="ddp", **more)
        for rank, more in enumerate(each)
    ]


def first(*told: Figures) -> Diagnosis:
    return diagnose(told)[0]


@pytest.mark.parametrize(
    ("kind", "told", "words"),
    [
        ("starting", {"steps": 0, "up_s": 12.0}, "no step in the 12 s since it began"),
        ("starting", {"steps": 2, "up_s": 5.0}, "2 steps in the 5 s"),
        ("stalled", {"last_s": 90.0}, "no step for 90 s, where one took 400 ms"),
        ("over", {"over": True}, "after step 1,000"),
        (
            "throttled",
            {"gpu": gpu(slowed=("heat",), clock_mhz=990, temperature_c=91)},
            "990 of 1980 MHz because of heat, 640 of 700 W, 91 °C; it is too hot or broken",
        ),
        ("throttled", {"gpu": gpu(slowed=("power",), clock_mhz=1200)}, "its power limit"),
        ("throttled", {"gpu": gpu(slowed=("brake",), clock_mhz=1200)}, "power supply"),
        ("checkpoint-bound", {"saving": 0.2}, "stands still for checkpoints 20 % of the time"),
        (
            "input-bound",
            {"data": 0.38},
            "38 % of each step waits for data; 2 loader workers on 16 cores; try num_workers=15",
        ),
        ("input-bound", {"data": 0.38, "workers": None}, "a DataLoader with num_workers"),
        ("input-bound", {"data": 0.38, "workers": 16}, "make a sample cheaper"),
        ("crowded", {"crowded": 0.4}, "use the CPU 40 % of the time"),
        ("launch-bound", {"gpu": gpu(busy=0.3, power_w=200.0)}, "busy 30 % of the time, 29 %"),
        ("memory-bound", {"gpu": gpu(memory_busy=0.8)}, "its memory 80 % of the time"),
        ("compute-bound", {}, "the GPU is busy 97 % and its memory 35 % of the time, 91 %"),
        (
            "compute-bound",
            {"gpu": None, "device": "cpu", "cpu": 1.9, "cores": 2, "threads": 2},
            "it keeps 1.9 of 2 processors busy with 2 threads; use a GPU",
        ),
        (
            "compute-bound",
            {"gpu": None, "device": "cpu", "cpu": 0.9, "cores": 8},
            "torch.set_num_threads(8)",
        ),
        ("unclear", {"gpu": None, "device": "cpu", "cpu": 0.2}, "torch.profiler"),
    ],
)
def test_each_kind_with_its_evidence_and_what_to_do(
    kind: str, told: dict[str, Any], words: str
) -> None:
    found = first(figures(**told))
    assert found.kind == kind
    assert words in found.words
    assert found.words.startswith(f"{kind}: ")


@pytest.mark.parametrize(
    "told",
    [
        {"data": module.WAITS - 0.001},
        {"saving": module.WAITS - 0.001},
        {"crowded": module.CROWDED - 0.001},
        {"comm": module.TALKS - 0.001},
        {"gpu": gpu(slowed=("power",), clock_mhz=1900)},  # a little is usual
        {"gpu": gpu(busy=module.IDLE_GPU)},
        {"last_s": 29.0},
        {"last_s": 100.0, "step_s": 10.0},
    ],
)
def test_a_little_of_it_is_no_trouble(told: dict[str, Any]) -> None:
    assert first(figures(**told)).kind == "compute-bound"


def test_the_heaviest_comes_first() -> None:
    found = diagnose([figures(data=0.2, saving=0.3, gpu=gpu(slowed=("heat",), clock_mhz=495))])
    assert [each.kind for each in found] == ["throttled", "checkpoint-bound", "input-bound"]
    assert [each.share for each in found] == [0.75, 0.3, 0.2]


def test_what_all_ranks_wait_is_communication() -> None:
    found = diagnose(ranks({"comm": 0.5}, {"comm": 0.45}, {"comm": 0.48}))
    assert [each.kind for each in found] == ["communication-bound"]
    assert found[0].share == 0.45
    assert "45 % of each step (400 ms) waits for collectives of 3 ranks" in found[0].evidence
    assert "DDP's own timers" in found[0].evidence


def test_what_the_others_wait_is_for_one_that_comes_late() -> None:
    late = {"comm": 0.02, "host": "node-7"}
    found = diagnose(ranks({"comm": 0.4}, late, {"comm": 0.42}, {"comm": 0.41}))
    assert [(each.kind, each.rank) for each in found] == [("straggling", 1)]
    assert "the others wait 39 % of each step for it on node-7" in found[0].evidence
    assert found[0].words.startswith("straggling, rank 1: ")


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ({"data": 0.45}, "it waits for data 45 % of the time"),
        ({"crowded": 0.5}, "other processes have its processor 50 %"),
        ({"gpu": gpu(slowed=("heat",), clock_mhz=1900)}, "slowed down by heat"),
    ],
)
def test_why_it_comes_late(why: dict[str, Any], words: str) -> None:
    found = diagnose(ranks({"comm": 0.4}, {"comm": 0.0, **why}))
    (one,) = (each for each in found if each.kind == "straggling")
    assert one.rank == 1
    assert words in one.evidence
    assert "the other waits 40 %" in one.evidence
    assert not [each for each in found if each.kind in ("input-bound", "crowded")]


def test_who_waits_for_a_late_rank_and_for_the_network() -> None:
    found = diagnose(ranks({"comm": 0.6}, {"comm": 0.2}))
    assert [each.kind for each in found] == ["straggling", "communication-bound"]


def test_one_rank_that_has_stopped_telling_says_nothing_of_the_others() -> None:
    assert first(*ranks({"steps": 0}, {})).kind == "compute-bound"


def test_nothing_of_nobody() -> None:
    assert diagnose([]) == []


shares = st.none() | st.floats(0, 1)


@given(
    st.lists(
        st.builds(
            Figures,
            rank=st.integers(0, 7),
            world=st.just(8),
            steps=st.integers(0, 9),
            step_s=st.none() | st.floats(0, 1e6),
            last_s=st.floats(0, 1e9),
            data=shares,
            comm=shares,
            crowded=shares,
            saving=st.floats(0, 1),
            cpu=st.none() | st.floats(0, 64),
            workers=st.none() | st.integers(0, 99),
            cores=st.integers(0, 99),
            threads=st.integers(0, 99),
            local=st.integers(0, 9),
            gpu=st.none() | st.builds(Gpu, busy=shares, memory_busy=shares),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_there_is_always_an_answer(told: list[Figures]) -> None:
    """Whatever a job says of itself."""
    found = diagnose(told)
    assert found
    assert all(each.evidence and 0 <= each.share <= 1 for each in found)
    assert [each.share for each in found] == sorted((each.share for each in found), reverse=True)
