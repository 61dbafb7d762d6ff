"""Traces as load by second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tradewind.base.errors import BadFile, NoAccess
from tradewind.estimate.serving.mix import Mix
from tradewind.sim.serving import demand

LENGTHS = (
    "t_s,in_p5,in_p25,in_p50,in_p75,in_p90,in_p95,in_p99,in_mean,"
    "out_p5,out_p25,out_p50,out_p75,out_p90,out_p95,out_p99,out_mean\n"
    "0,10,50,100,200,300,400,900,150,5,10,20,40,80,100,200,35\n"
)


def work(mix: Mix) -> float:
    return 0.001 * mix.input + 0.01 * mix.output


def rates(folder: Path, text: str, lengths: str = LENGTHS) -> Path:
    if lengths:
        (folder / "x_lengths.csv").write_text(lengths)
    path = folder / "x_rates.csv"
    path.write_text(text)
    return path


def busiest(load: np.ndarray) -> float:
    total = np.concatenate([[0.0], np.cumsum(load)])
    return float((total[600:] - total[:-600]).max() / 600)


def test_rates_are_scaled_to_the_peak_and_keep_their_course(tmp_path: Path) -> None:
    path = rates(
        tmp_path, "t_s,req_per_s,cv_interarrival\n0,10,1\n600,40,2\n1200,20,1\n1800,20,1\n"
    )
    found = demand.read(path, work, 6, 0)
    assert len(found.load) == 2400
    assert busiest(found.load) == pytest.approx(6, rel=0.1)
    assert found.load[600:1200].mean() > 1.5 * found.load[:300].mean()
    assert found.answer == 200
    assert found.mix.input == pytest.approx(150, rel=0.02)
    again = demand.read(path, work, 6, 0)
    assert np.array_equal(found.load, again.load)


def test_requests_are_copied_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    rows = [f"{second},{100 + second % 50},{10 + second % 7}" for second in range(1800)]
    path.write_text("\n".join(["t_s,input_tokens,output_tokens", *rows]))
    many = demand.read(path, work, 20, 0)
    assert busiest(many.load) == pytest.approx(20, rel=0.1)
    few = demand.read(path, work, 0.1, 0)
    assert few.requests.sum() < 1800 < many.requests.sum()
    assert many.load.sum() / many.requests.sum() == pytest.approx(work(many.mix), rel=0.05)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t_s,x\n0,1\n1,2\n", "is no trace"),
        ("t_s,req_per_s\n0,1\n", "one row"),
        ("t_s,req_per_s\n0,\n1,2\n", "missing"),
        ("t_s,req_per_s\n0,many\n1,2\n", "x_rates.csv:2"),
        ("t_s,req_per_s\n0,0\n600,0\n", "nothing is asked for"),
    ],
)
def test_bad_traces(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadFile, match=said):
        demand.read(rates(tmp_path, text), work, 5, 0)


def test_rates_need_lengths(tmp_path: Path) -> None:
    path = rates(tmp_path, "t_s,req_per_s\n0,1\n600,2\n", lengths="")
    with pytest.raises(NoAccess) as caught:
        demand.read(path, work, 5, 0)
    assert "x_rates.csv has rates" in str(caught.value.hint)
