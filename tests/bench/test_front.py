"""What wrk prints, as figures; and the whole of it, with real parts."""

from __future__ import annotations

import pytest

from tradewind.base.errors import SourceFailed
from tradewind.bench import front

PRINTED = """\
Running 3s test @ http://127.0.0.1:1/v1/completions
  1 threads and 2 connections
  Latency Distribution
     50%  283.00us
     75%  400.00us
     90%    0.61ms
     99%    1.20s
  36001 requests in 3.00s, 6.66MB read
  Socket errors: connect 0, read 1, write 0, timeout 2
  Non-2xx or 3xx responses: 4
Requests/sec:  12000.33
"""


def test_percentiles_rates_and_failures_are_read() -> None:
    found = front.read(PRINTED)
    assert found["p50_ms"] == pytest.approx(0.283)
    assert found["p99_ms"] == pytest.approx(1200)
    assert (found["requests"], found["requests_per_s"], found["failed"]) == (36001, 12000.33, 7)
    with pytest.raises(SourceFailed, match="unable to connect"):
        front.read("unable to connect to 127.0.0.1:1")


@pytest.mark.system
def test_the_front_is_measured_with_real_parts() -> None:
    found = front.measure(seconds=1, repeats=1)
    assert found["failed"] == 0
    assert found["requests_per_cpu_s"] > 0
    assert found["front_p50_ms"] > 0
