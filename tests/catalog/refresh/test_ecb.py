"""The central bank's rate, over HTTP, and what happens to prices in euros without one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.catalog.refresh.asking import context
from tests.local_http import LocalHttp, Reply
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.ecb import dollars_per_euro

BANK = "/stats/eurofxref/eurofxref-daily.xml"


def rates(usd: str = "1.1699", day: str = "2026-11-13") -> str:
    """As the bank writes them."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="x">
  <gesmes:subject>Reference rates</gesmes:subject>
  <Cube>
    <Cube time='{day}'>
      <Cube currency='USD' rate='{usd}'/>
      <Cube currency='JPY' rate='158.64'/>
    </Cube>
  </Cube>
</gesmes:Envelope>"""


def asked(server: LocalHttp, patience_s: float | None = None) -> Decimal:
    env = {"TRADEWIND_ECB_URL": f"{server.url}{BANK}"}
    return dollars_per_euro(context("scaleway", server, env, patience_s=patience_s))


# The bank rests on weekends and feasts; the test's today is Sunday, the 15th.
@pytest.mark.parametrize("day", ["2026-11-15", "2026-11-13", "2026-11-05"])
def test_the_rate_of_the_last_working_day(server: LocalHttp, day: str) -> None:
    server.on(BANK, rates(day=day))
    assert asked(server) == Decimal("1.1699")


def test_other_quotes_around_the_numbers(server: LocalHttp) -> None:
    server.on(BANK, rates().replace("'", '"'))
    assert asked(server) == Decimal("1.1699")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (rates(usd="x"), "no reference rate"),
        (rates(usd="117.4"), "117.4 USD of 2026-11-13 is not today's rate"),
        (rates(usd="0.4"), "0.4 USD of 2026-11-13 is not today's rate"),
        (rates(day="2026-11-04"), "of 2026-11-04 is not today's rate"),
        (rates(day="2026-13-45"), "2026-13-45 is no date"),
        (rates(day="2026-11-31"), "2026-11-31 is no date"),
        ("<html>moved</html>", "no reference rate"),
        (b"\xff\xfe\xff", "broke off"),
        (Reply(status=404), "HTTP 404"),
        (Reply(status=500), "HTTP 500"),
        (Reply(rates(), cut=100), "127.0.0.1"),
    ],
)
def test_a_rate_that_cannot_be_used(server: LocalHttp, answer: Any, message: str) -> None:
    server.on(BANK, answer)
    with pytest.raises(SourceFailed, match=message) as caught:
        asked(server)
    assert caught.value.hint == "the prices are in EUR; the old ones stay in place"
    assert caught.value.status is None  # or the provider's key would be blamed


def test_a_bank_that_does_not_answer(server: LocalHttp) -> None:
    server.on(BANK, Reply(rates(), delay_s=1))
    with pytest.raises(SourceFailed, match="timed out"):
        asked(server, patience_s=0.2)


def test_a_passing_fault_passes(server: LocalHttp) -> None:
    server.on(BANK, Reply(status=503), rates())
    assert asked(server) == Decimal("1.1699")
