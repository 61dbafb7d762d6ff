"""Names that others have for our fields are answered with ours."""

from __future__ import annotations

import pytest

from tradewind.base.errors import BadWorkload
from tradewind.workload import reader, synonyms
from tradewind.workload.fields import SECTIONS

PATHS = {section.path(field.name) for section in SECTIONS for field in section.fields}


def test_every_name_leads_to_a_field() -> None:
    assert {place.path for place in synonyms._OTHERS.values()} <= PATHS


def test_every_flag_of_a_plan_leads_to_its_field() -> None:
    from tradewind.cli.plan.plan import _FIELDS

    for flag, path in _FIELDS.items():
        place = synonyms.place_of(flag)
        assert place is not None
        assert place.path == path or place.path.split(".")[1] == path.split(".")[1], flag


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train: {seq: 4096}", "train.seq: there is no such field; did you mean 'sequence'?"),
        ("train: {batch-size: 8}", "did you mean 'global_batch'?"),
        ("num_nodes: 2", "num_nodes: there is no such field; did you mean 'nodes'?"),
        ("limits: {num_nodes: 2}", "did you mean 'max_nodes'?"),
        ("use_spot: true", "did you mean 'limits.markets' ([spot])?"),
        ("accelerators: H100:8", "did you mean 'gpus' (H100:8)?"),
        ("resources: {cpus: 8}", "did you mean 'gpus' (H100:8)?"),
        ("envs: {A: b}", "did you mean 'run.env'?"),
        ("run: {deadline: 3h}", "run.deadline: there is no such field; did you mean 'limits."),
        ("limits: {gpus: [H100]}", "did you mean 'accelerators'?"),
        ("limits: {budgte: $3}", "did you mean 'budget'?"),
        ("limits: {xyzzy: 3}", "legal: deadline, hard"),
    ],
)  # fmt: skip
def test_files_of_others(text: str, words: str) -> None:
    with pytest.raises(BadWorkload) as caught:
        reader.read(text, "work.yaml")
    assert words in caught.value.message


def test_what_is_there_under_another_name_is_not_missing_too() -> None:
    text = "train: {model: llama-3.1-8b, tokens: 1B, seq: 4096, batch_size: 64}"
    with pytest.raises(BadWorkload) as caught:
        reader.read(text, "work.yaml")
    assert len(caught.value.message.splitlines()) == 2, caught.value.message
