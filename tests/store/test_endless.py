"""Objects of a bucket that are larger than any memory are not received."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endless import ENOUGH, endless
from tradewind import store
from tradewind.base.errors import TooLarge


def test_they_are_neither_held_nor_written(tmp_path: Path) -> None:
    with endless() as (url, door):
        env = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "TRADEWIND_HOME": str(tmp_path / "home"),
        }
        opened = store.open("s3://bucket", env=env)
        with pytest.raises(TooLarge, match=r"4\.4TB"):
            opened.get("runs/r/machines/m/heartbeat.json", most=1 << 18)
        assert door.gone.wait(60)
        with pytest.raises(TooLarge):
            opened.download("runs/r/job/bundle.tar.gz", tmp_path / "out", most=1 << 28)
        assert list(tmp_path.glob("*out*")) == []
        assert door.sent < ENOUGH
