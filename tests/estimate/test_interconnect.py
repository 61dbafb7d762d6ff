"""A network as a measurement describes it, and what it does to an estimate."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimate.test_calibrate import read, row
from tradewind.estimate import interconnect
from tradewind.estimate.constants import PRIORS, Constants, fitted
from tradewind.estimate.time import step_time


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("nvlink; ib 800Gb/s/node", 100),
        ("nvlink; omni-path 2x100Gb/s/node", 25),
        ("nvl72; ib 800Gb/s/gpu (assumed)", 800),
        ("nvlink; ib (rate not published)", 400),
        ("nvlink; gpudirect-tcpx 4x200Gb/s/node (A3)", 100),
        ("nvlink 900GB/s; roce 8x200 Gbps per node", 200),
        ("nvlink; 4xHDR", 100),
        ("ib 400Gb/s", 400),  # what each has usually
        ("ib 200Gb/s", 25),
        ("pcie; 100GbE", 12.5),
        ("nvlink; efa 3.2Tb/s/node", 400),
        ("ethernet", 12.5),
        ("ICI within slice; DCN across 2 slice(s)", 400),
        ("", 400),
    ],
)
def test_networks_are_read_in_the_words_people_use(text: str, gbps: float) -> None:
    assert interconnect.network_gbps(text, 8, 400) == pytest.approx(gbps)


def test_a_machine_with_nothing_but_pcie_has_no_faster_link() -> None:
    assert interconnect.link("pcie; ib 100Gb/s/node", "ampere", 300e9) < 50e9
    assert interconnect.link("nvlink; ib 100Gb/s/node", "ampere", 300e9) == 300e9
    assert interconnect.link("", "ampere", 300e9) == 300e9


@pytest.mark.parametrize("sharding", ["zero3", "zero1", "none"])
def test_a_slower_network_never_makes_an_estimate_faster(sharding: str) -> None:
    rates = [400, 200, 100, 50, 25, 10]
    rows = [
        row(interconnect=f"nvlink; ib {rate}Gb/s/gpu", n_gpus=64, dp=64, sharding=sharding,
            grad_accum=1)
        for rate in rates
    ]  # fmt: skip
    speeds = step_time(read(*rows).cases, fitted()).tokens_per_s
    assert (np.diff(speeds) < 0).all()
    assert speeds[-1] < 0.7 * speeds[0]


def test_no_constant_lifts_an_estimate_above_the_line_rate() -> None:
    wild = Constants(
        {name: 1e9 if name == "network_used" else p.start for name, p in PRIORS.items()}
    )
    slow = row(interconnect="nvlink; ib 1Gb/s/gpu", n_gpus=64, dp=64, sharding="none", grad_accum=1)
    found = read(slow)
    step = step_time(found.cases, wild).step[0]
    parameters = 8e9
    at_line_rate = 8 * parameters * 63 / 64 / (8 * 1e9 / 8)  # all eight ways out of a machine
    assert step > 0.8 * at_line_rate
