"""`tradewind bench serve-steps`: on a CPU with a tiny model. Timing decides nothing here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tradewind import catalog
from tradewind.estimate import measurements
from tradewind.estimate.serving import rows, served

torch = pytest.importorskip("torch")

from tradewind.bench import serve_model, serve_steps  # noqa: E402


def test_passes_are_timed_and_written_and_marked_as_a_trial(cli: Cli, tmp_path: Path) -> None:
    shared = tmp_path / "steps.csv"
    found = cli("bench", "serve-steps", "--tiny", "--share", str(shared))
    assert found.code == 0
    cells = measurements.rows_of(shared)
    assert len(cells) == len(serve_steps.TINY)
    assert all(float(row["ttft_ms_p50"] or row["tpot_ms_p50"]) > 0 for row in cells)
    assert not any(rows.usable(row) for row in cells)


def test_without_a_gpu_it_says_what_it_needs(cli: Cli) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert "--tiny" in cli("bench", "serve-steps").err


def test_decoding_with_the_cache_says_what_reading_it_all_says() -> None:
    """The cache holds what a prefill puts there: so what is timed is the real thing."""
    torch.manual_seed(0)
    model = serve_model.build(serve_steps.shape_of("tiny"), 3, 17, "cpu").float()
    tokens = torch.randint(512, (3, 18))
    with torch.inference_mode():
        whole = model(tokens, 0)
        model(tokens[:, :17], 0)
        assert torch.equal(model(tokens[:, 17:], 17), whole)


def test_every_pass_has_an_estimate_that_grows_with_it() -> None:
    chip = catalog.load(account=False).accelerators["H200"]
    for step in serve_steps.PASSES:
        assert 1e-4 < serve_steps.estimated(step, chip) < 5
    less, more = (serve_steps.Pass("llama-3.1-8b", "decode", b, 1024) for b in (1, 128))
    assert serve_steps.estimated(less, chip) < serve_steps.estimated(more, chip)


def test_rows_of_a_gpu_can_be_fitted_to() -> None:
    chip = catalog.load(account=False).accelerators["H200"]
    made_with = {"gpu": "H200", "driver": "1", "torch": "2.11", "measured_on": "2026-11-18"}
    timed = serve_steps.Timed(serve_steps.PASSES[-1], 0.01, 7, True)
    cells = {name: str(cell) for name, cell in serve_steps.row(timed, chip, made_with).items()}
    found = rows.read([cells], lambda _: chip, served.find)
    assert found.measured["tpot"][0] == pytest.approx(0.01)
