from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json

from tests.providers.gcp.machines import way
from tradewind.api import sustained
from tradewind.model.run import Way

N1 = way(instance_type="n1-standard-8+1xT4")
STEPS = ((0, 10_000), (2_500, 8_000), (5_000, 6_000), (7_500, 4_000))


def test_the_ways_of_a_run_have_what_the_account_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    ways = [N1, way(instance_type=N1.instance_type, market="spot"), way()]
    assert sustained.told(ways) == ways
    (tmp_path / "account.yaml").write_text(
        "discounts:\n  - {match: {provider: gcp, region: us-*}, sustained: true}\n"
    )
    told = sustained.told(ways)
    assert [each.sustained for each in told] == [STEPS, (), ()]
    assert told[0].price == N1.price
    assert json.decode(json.encode(told[0]), type=Way) == told[0]  # as a journal has it
    elsewhere = way(instance_type=N1.instance_type, region="europe-west4", zone="europe-west4-a")
    assert sustained.told([elsewhere]) == [elsewhere]
