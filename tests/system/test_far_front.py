"""A rented front's keeper with real HAProxy: whose orders it follows, what it says, how it ends."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import asdict, replace

from tests.eventually import eventually
from tests.served import engine
from tradewind import store as stores
from tradewind.base import signing
from tradewind.model import places
from tradewind.model.boot import Boot
from tradewind.model.frontorder import Backend, FrontOrder
from tradewind.model.service import FrontSpec
from tradewind.model.serving import FrontTold, Serving
from tradewind.supervisor.meeting import free_port

pytestmark = pytest.mark.system

RUN, KEY = "chat-1-f1", "0123456789abcdef" * 4


class Kept:
    """The keeper, as its supervisor would start it, and its store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.engine_port = folder, free_port(), free_port()
        self.store = stores.open(str(folder / "store"))
        boot = Boot(
            store_url=self.store.url, run_id=RUN, leg=1, rank=0, nodes=1, machine_id="m",
            launch_id="l", hard_stop_s=3600, after=1, key=KEY,
        )  # fmt: skip
        (folder / "boot.json").write_bytes(json.encode(boot))
        self.env = os.environ | {
            "TRADEWIND_STORE": self.store.url,
            "TRADEWIND_RUN": RUN,
            "TRADEWIND_SERVING": str(folder / "serving.json"),
            "TRADEWIND_SAVE": str(folder / "save"),
        }
        self.engine = subprocess.Popen(
            [sys.executable, engine.__file__, str(self.engine_port)], stdout=subprocess.DEVNULL
        )
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("w") as log:
            self.keeper = subprocess.Popen(
                [sys.executable, "-P", "-m", "tradewind.supervisor.front"],
                env=self.env,
                stdout=log,
            )

    def said(self, words: str) -> bool:
        return words in (self.folder / "log").read_text()

    def order(self, number: int, *, key: str = KEY, **more: object) -> None:
        wanted = FrontOrder(
            number=number,
            front=FrontSpec(port=self.port, queue_wait_s=2.0, hold_s=2.0),
            health="/health",
            backends=(Backend("r1", "127.0.0.1", self.engine_port, 4, False),),
            in_time_s=1.0,
        )
        data = json.encode(replace(wanted, **more))
        self.store.replace(places.front_order(RUN), signing.signed(data, key, signing.FRONT))

    def told(self) -> FrontTold:
        try:
            found = json.decode((self.folder / "serving.json").read_bytes(), type=Serving)
        except OSError:
            return FrontTold()
        return found.front or FrontTold()

    def asked(self, takes_s: float = 0.0) -> int:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            link.request("POST", "/v1/completions", json.encode({"takes_s": takes_s}))
            answer = link.getresponse()
            answer.read()
            return answer.status
        except OSError:
            return 0
        finally:
            link.close()

    def close(self) -> None:
        for each in (self.keeper, self.engine):
            each.terminate()
            each.wait(30)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    assert eventually(holds, within_s=60)


def test_only_its_own_orders_and_none_that_is_old(kept: Kept) -> None:
    kept.order(1, key="f" * 64)
    until(lambda: kept.said("not signed by a controller"))
    assert kept.told().order == 0
    kept.order(3)
    until(lambda: kept.told().order == 3 and kept.told().up == ("r1",))
    assert kept.asked() == 200
    kept.keeper.send_signal(signal.SIGKILL)  # and whoever comes after it remembers
    kept.keeper.wait()
    kept.order(2, backends=())
    kept.start()
    until(lambda: kept.told().order == 3 and kept.asked() == 200)
    kept.order(4, backends=())
    until(lambda: kept.told().order == 4 and kept.told().up == ())
    assert kept.asked() == 503


def test_it_ends_with_its_last_answer(kept: Kept) -> None:
    from concurrent.futures import ThreadPoolExecutor

    kept.order(1)
    until(lambda: kept.told().up == ("r1",))
    with ThreadPoolExecutor(1) as pool:
        last = pool.submit(kept.asked, 3.0)
        until(lambda: kept.told().busy == {"r1": 1})
        kept.order(2, ending=True)
        until(lambda: kept.told().order == 2)
        assert not kept.told().finished
        assert kept.asked() == 0
        assert last.result() == 200
    until(lambda: kept.told().finished)
    kept.keeper.terminate()
    assert kept.keeper.wait(30) == 0
    assert asdict(kept.told())["busy"] == {}
