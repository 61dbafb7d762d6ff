"""`tradewind bench gpu-steps`: what it shares. Timing decides nothing here."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tradewind import catalog
from tradewind.bench import gpu_shapes
from tradewind.bench.measured import finders
from tradewind.estimate import measurements

pytest.importorskip("torch")

from tradewind.bench import gpu_steps, sharing


@pytest.mark.slow
def test_measured_steps_are_written_in_our_schema(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial on a CPU: marked so, with provenance, and with nothing of whose machine it was."""
    monkeypatch.setenv("HOSTNAME", "somebodys-host")
    shared = tmp_path / "private-folder" / "steps.csv"
    shared.parent.mkdir()
    assert cli("bench", "gpu-steps", "--tiny", "--share", str(shared)).code == 0
    rows = measurements.rows_of(shared)
    assert tuple(rows[0]) == sharing.COLUMNS
    ours = Path(__file__).parents[2] / "measurements" / "h200-torch-2.11.csv"
    assert set(measurements.rows_of(ours)[0]) <= set(sharing.COLUMNS)
    assert len(rows) == len(gpu_shapes.TINY)
    for row in rows:
        assert row["torch"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["measured_on"])
        assert float(row["tokens_per_s_per_gpu"]) > 0
    text = shared.read_text()
    for secret in ("somebodys-host", "private-folder", socket.gethostname(), getpass.getuser()):
        assert not re.search(rf"\b{re.escape(secret)}\b", text)
    if rows[0]["accelerator"] == "CPU":
        assert all(row["quality"].startswith("q") for row in rows)


def test_a_shared_row_is_read_back_as_the_step_it_was() -> None:
    chip = catalog.load(account=False).accelerators["H200"]
    provenance = {"gpu": "H200", "driver": "", "torch": "2.11", "measured_on": "2026-11-17"}
    for step in gpu_shapes.SHAPES:
        found = gpu_steps.Measured(step, 0.5, 8, 10**10, 11 * 10**9, 10**9)
        row = {name: str(value) for name, value in sharing.row(found, chip, provenance).items()}
        assert float(row["allocated_gb"]) == 10
        case = measurements.case_of(row, *finders())
        wanted = gpu_shapes.case_of(step, chip)
        for name in ("layers", "d_ff", "experts", "micro_batch", "recompute", "mixed", "stack"):
            assert case[name] == wanted.get(name, 0), (name, step)
        if not step.lora:
            assert case["optimizer_bytes"] == wanted["optimizer_bytes"]


def test_a_step_is_held_against_its_profile_too() -> None:
    chip = catalog.load(account=False).accelerators["H200"]
    found = gpu_steps.Measured(gpu_shapes.TINY[0], 0.5, 8, 10**10, 11 * 10**9, 10**9)
    row = gpu_steps.compared(found, chip)
    assert row["profile_time_ratio"] > 0
    assert row["profile_memory_ratio"] > 0
