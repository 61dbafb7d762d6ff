"""A bucket whose objects are larger than any memory: their content is not received."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.door import Door, serving
from tradewind import store
from tradewind.errors import TooLarge
from tradewind.store import Store

_SAID = 1 << 42
_BLOCK = b"x" * (1 << 20)
_ENOUGH = 512
"""MiB that a reader who takes everything has got when the server gives up on it."""


class _Endless(Door):
    sent = 0
    gone: threading.Event

    def _stream(self) -> None:
        self.send_response_only(200)
        self.send_header("Content-Length", str(_SAID))
        self.send_header("ETag", '"one"')
        self.send_header("Last-Modified", "Mon, 16 Nov 2026 12:00:00 GMT")
        self.end_headers()
        self.close_connection = True
        try:
            while type(self).sent < _ENOUGH:
                self.wfile.write(_BLOCK)
                type(self).sent += 1
        except OSError:
            self.gone.set()  # the reader closed it

    do_GET = _stream  # noqa: N815


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[tuple[Store, type[_Endless]]]:
    door = type("Fresh", (_Endless,), {"sent": 0, "gone": threading.Event()})
    with serving(door) as port:
        env = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "TRADEWIND_HOME": str(tmp_path / "home"),
        }
        yield store.open("s3://bucket", env=env), door


def test_it_is_neither_held_nor_written(
    endless: tuple[Store, type[_Endless]], tmp_path: Path
) -> None:
    opened, door = endless
    with pytest.raises(TooLarge, match=r"4\.4TB"):
        opened.get("runs/r/machines/m/heartbeat.json", most=1 << 18)
    assert door.gone.wait(60)
    with pytest.raises(TooLarge):
        opened.download("runs/r/job/bundle.tar.gz", tmp_path / "out", most=1 << 28)
    assert list(tmp_path.glob("*out*")) == []
    assert door.sent < _ENOUGH
