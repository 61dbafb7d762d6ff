"""The test's end of the equipment: what it can turn, make happen, and look at."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any

from tests.eventually import eventually


class Control:
    """`url` is the API's endpoint, and control's. `host` is an address of this computer that bodies
    reach too: bind to it what they need."""

    def __init__(self, url: str) -> None:
        self.url = url
        status = self._do("status")
        self.host: str = status["host"]
        self.bodies: str = status["bodies"]
        """none, process or netns."""

    # -- dials -------------------------------------------------------------------------------------

    def dials(self, **settings: Any) -> None:
        """lag_s, pending_s, shutting_down_s, speed, pace_s, body_env and the face's own; see
        dials.py."""
        self._do("dials", **settings)

    def capacity(
        self, most: int | None, *, zone: str = "*", kind: str = "*", market: str = "*"
    ) -> None:
        """None: no limit of these any more. The market is spot or on-demand."""
        self._do("capacity", most=most, zone=zone, kind=kind, market=market)

    def quota(self, code: str, value: float, region: str = "*") -> None:
        self._do("quota", code=code, value=value, region=region)

    def fail(
        self,
        action: str,
        code: str,
        *,
        count: int = 1,
        message: str = "as the test has asked",
        status: int | None = None,
        after: bool = False,
    ) -> None:
        """`after`: they are carried out first."""
        asked = {"action": action, "code": code, "count": count, "message": message}
        self._do("fail", **asked, status=status, after=after)

    def lose(self, action: str, count: int = 1) -> None:
        """The next answers. Some clients ask again by themselves: lose as many as they try."""
        self._do("lose", action=action, count=count)

    def on_demand_price(self, kind: str, usd_hour: float, region: str = "*") -> None:
        self._do("on_demand_price", kind=kind, usd_hour=usd_hour, region=region)

    def spot_price(self, kind: str, zone: str, usd_hour: float, at: float | None = None) -> None:
        self._do("spot_price", kind=kind, zone=zone, usd_hour=usd_hour, at=at)

    def sustained(self, begins: str, steps: Iterable[tuple[str, str]]) -> None:
        """Types whose names begin so cost the less the longer they are up in a month: from which
        share of it on, what share of the price is paid, as decimals."""
        self._do("sustained", begins=begins, steps=list(steps))

    def expose(self, port: int) -> str:
        """What listens on 127.0.0.1:port becomes reachable for bodies; the URL of it."""
        return str(self._do("expose", port=port))

    def s3(self, port: int) -> str:
        """A door before the S3 server at 127.0.0.1:port: bodies reach it, and `bill` tells what
        each of them has asked there; those of other clouds too, by their addresses. Its URL."""
        return str(self._do("s3", port=port))

    # -- what happens ------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        self._do("advance", seconds=seconds)

    def hold(self) -> None:
        """Its clock stands still from now on, but for `advance`: what a machine costs then does not
        depend on how fast this computer is."""
        self._do("hold")

    def trace(self, zone: str, trace: Iterable[tuple[float, int]], speed: float = 1.0) -> None:
        self._do("trace", zone=zone, trace=list(trace), speed=speed)

    def interrupt(self, machine_id: str, notice_s: float | None = None) -> None:
        self._do("interrupt", machine_id=machine_id, notice_s=notice_s)

    def warn(self, machine_id: str) -> None:
        """That it may be taken soon: less than a notice."""
        self._do("warn", machine_id=machine_id)

    def ask_to_end(self, machine_id: str) -> None:
        """Its processes, as a host does that goes down. The cloud does not notice."""
        self._do("ask_to_end", machine_id=machine_id)

    def crash(self, machine_id: str) -> None:
        self._do("crash", machine_id=machine_id)

    # -- looking -----------------------------------------------------------------------------------

    def now(self) -> float:
        return float(self._do("status")["now"])

    def bill(self) -> Any:
        return self._do("bill")

    def left(self) -> list[str]:
        return list(self.bill()["left"])

    def everything(self) -> Any:
        return self._do("everything")

    def calls(self, action: str = "") -> list[Any]:
        made = self._do("calls")
        return [each for each in made if not action or each["action"] == action]

    def alive(self, machine_id: str) -> list[tuple[int, str]]:
        """Processes of a body, but its own first one: pid and command."""
        return [(pid, command) for pid, command in self._do("alive", machine_id=machine_id)]

    def end_all(self) -> None:
        """What a test has left."""
        self._do("end_all")

    def console(self, machine_id: str) -> str:
        return str(self._do("console", machine_id=machine_id))

    def state(self, machine_id: str) -> str:
        """As the API shows it, in words of world.STATES."""
        return str(self._do("state", machine_id=machine_id))

    def wait(self, machine_id: str, state: str) -> None:
        eventually(lambda: self.state(machine_id) == state)

    def wait_console(self, machine_id: str, text: str) -> str:
        try:
            eventually(lambda: text in self.console(machine_id))
            return self.console(machine_id)
        except AssertionError:
            raise AssertionError(f"no {text!r} in {self.console(machine_id)!r}") from None

    def _do(self, control: str, /, **asked: Any) -> Any:
        body = json.dumps(asked).encode()
        try:
            with urllib.request.urlopen(
                f"{self.url}/_control/{control}", body, timeout=60
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from None
