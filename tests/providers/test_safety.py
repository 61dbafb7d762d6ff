"""How clouds keep a launch from being made twice, and end a bill: as the documentation has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.base.errors import InvalidValue
from tradewind.model.run import ENDS, Facts
from tradewind.providers import registry

PAGE = Path(__file__).parents[2] / "docs" / "design" / "015-clouds.md"
WORDS = {
    "itself": "the machine shuts itself down",
    "limit": "a timer of the cloud's",
    "key": "the machine, with a key for that alone",
    "never": "nothing",
}


def row(name: str) -> str:
    facts = registry.cloud(name).facts
    many = ("all or none" if facts.gang else "one by one") + ", from a queue" * facts.queues
    return f"| {name} | {facts.safety} | {facts.labels} | {many} | {WORDS[facts.ends]} |"


def test_the_page_says_of_each_cloud_what_its_facts_are() -> None:
    assert set(WORDS) == set(ENDS)
    lines = PAGE.read_text().splitlines()
    assert [name for name in registry.CLOUDS if row(name) not in lines] == []


def test_a_cloud_whose_machines_could_not_be_found_again_is_refused() -> None:
    with pytest.raises(InvalidValue, match="machines are found again by 'nothing'"):
        Facts(labels="nothing")
