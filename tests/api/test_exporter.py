"""Metrics for Prometheus where the store is slow, a run is broken, the address is another."""

from __future__ import annotations

import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tradewind import store as stores
from tradewind.api import exporter
from tradewind.api.exporter import Exporter
from tradewind.api.follow import Sight
from tradewind.journal import runs_store


def test_who_asks_while_another_looks_is_told_what_was_seen_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Exporter(stores.open(str(tmp_path)), every_s=0)
    before = found.text()
    looks, go_on = threading.Event(), threading.Event()

    def slow(_: Any) -> list[str]:
        looks.set()
        go_on.wait(60)
        return []

    monkeypatch.setattr(runs_store, "live_ids", slow)
    told: list[str] = []
    first = threading.Thread(target=found.text)
    second = threading.Thread(target=lambda: told.append(found.text()))
    first.start()
    try:
        assert looks.wait(20)
        second.start()
        second.join(20)
        assert told == [before]
    finally:
        go_on.set()
    first.join()
    second.join()


def test_a_run_that_is_broken_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Sight) -> None:
        raise ValueError("not what it was")

    monkeypatch.setattr(runs_store, "live_ids", lambda _: ["a-run"])
    monkeypatch.setattr(Sight, "look", broken)
    text = Exporter(stores.open(str(tmp_path)), every_s=1).text()
    (line,) = [each for each in text.splitlines() if each.startswith(exporter.TROUBLES.name + "{")]
    assert float(line.rpartition(" ")[2]) == 1


@pytest.mark.parametrize(("host", "at"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_it_listens_at_addresses_of_both_kinds(tmp_path: Path, host: str, at: str) -> None:
    with exporter.server(Exporter(stores.open(str(tmp_path)), every_s=1), host, 0) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        url = f"http://{at}:{server.server_address[1]}/metrics"
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert b"tradewind_up" in answer.read()
        server.shutdown()
        serving.join()
