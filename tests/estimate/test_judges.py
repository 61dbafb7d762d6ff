"""Blocks that are left out: as strange as what will come, and never in the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.estimate.test_calibrate import read, row
from tradewind.estimate import judges, left_out
from tradewind.estimate.measurements import Measurements


def measured() -> Measurements:
    rows: list[dict[str, Any]] = [
        {"source": "a", "sw_date": "2023-06"},
        {"source": "a", "sw_date": "2023-06", "accelerator": "A100-SXM-80"},
        {"source": "b", "sw_date": "2024-01", "n_gpus": 16, "dp": 16},
        {"source": "b", "sw_date": "2024-10", "n_gpus": 16, "dp": 16,
         "interconnect": "nvlink; roce 8x200Gb/s/node"},
        {"source": "c", "sw_date": "2025-03", "stack": "megatron"},
        {"source": "c", "sw_date": "2026-03", "stack": "megatron"},
    ]  # fmt: skip
    large = [
        {"source": "large", "stack": "nanotron", "model": f"m{width}", "d_model": width}
        for width in (1024, 2048, 4096)
        for _ in range(judges.LARGE // 2)
    ]
    return read(*(row(**{"sw_date": "2023-01", **fields}) for fields in [*rows, *large]))


def test_generations_are_left_out_by_source_and_a_lone_large_one_by_halves() -> None:
    found = measured()
    blocks = judges.generations(found)
    names = [{(found.sources[i], str(found.cases.generation[i])) for i in np.flatnonzero(b.out)}
             for b in blocks]  # fmt: skip
    assert names == [
        {("a", "ampere")}, {("a", "hopper")}, {("b", "hopper")}, {("c", "hopper")},
        {("large", "hopper")}, {("large", "hopper")},
    ]  # fmt: skip
    small, big = (set(np.array(found.models)[b.out]) for b in blocks[-2:])
    assert small == {"m1024"}
    assert big == {"m2048", "m4096"}
    assert np.sum([block.out for block in blocks], axis=0).tolist() == [1] * len(found.cases)


def test_releases_are_judged_by_what_was_measured_before_them() -> None:
    found = measured()
    for block in judges.releases(found):
        assert found.cases.year[block.rest].max() < found.cases.year[block.out].min()
        assert set(found.cases.stack[block.out]) <= set(found.cases.stack[block.rest])
    judged = np.sum([block.out for block in judges.releases(found)], axis=0)
    # The first of a stack has no release before it.
    assert judged[:6].tolist() == [0, 0, 1, 1, 0, 1]


def test_networks_are_left_out_where_they_are_crossed() -> None:
    found = measured()
    blocks = judges.networks(found)
    assert [np.flatnonzero(block.out).tolist() for block in blocks] == [[2], [3]]
    assert {found.networks[2], found.networks[3]} == {"ib 400", "roce 200"}


def test_no_row_is_judged_by_itself() -> None:
    found = measured()
    for judge in judges.JUDGES.values():
        blocks = judge(found)
        assert not any((block.out & block.rest).any() for block in blocks)
        judged = left_out.of_blocks(found, blocks)
        assert len(judged.rows) == len(judged.residuals) == len(judged.familiarity)
        assert np.isfinite(judged.residuals).all()
