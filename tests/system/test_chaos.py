"""Runs among real processes that are really killed, in a folder and on a real S3 server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.store import servers

pytestmark = pytest.mark.system

KILLS = 40
LOST = ("lost_runs", "lost_log_bytes", "orphans", "doubled_lines", "torn_lines")
NOTHING = dict.fromkeys(LOST, 0)


def chaos(*arguments: str, env: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "tradewind", "bench", "chaos", "--json"]
    done = subprocess.run(
        [*command, "--kills", str(KILLS), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] == KILLS
    assert len(found["kinds"]) > 4
    assert found["recoveries"] > 0
    assert found["log_lines"] > 60 * found["runs"] * 0.9  # of each run's steps, most left a record
    assert found["folder"] == "", "nothing was lost, so nothing is kept"
    return {name: found[name] for name in LOST}


@pytest.mark.long  # the same as on a server, which can do more wrong
def test_in_a_folder(tmp_path: Path) -> None:
    assert chaos("--seed", "11", env={"TMPDIR": str(tmp_path)}) == NOTHING
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_on_a_real_s3_server(tmp_path: Path) -> None:
    with servers.s3(tmp_path) as env:
        assert chaos("--seed", "12", "--store", "s3://runs/chaos", env=env) == NOTHING
