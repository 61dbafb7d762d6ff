"""Metrics of a run, from its job by way of heartbeats and the store into a real Prometheus, which
is then asked all that the dashboard asks."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.store.servers import free_ports
from tradewind.telemetry import dashboard

pytestmark = pytest.mark.system

JOB = """\
import json, os, time
from pathlib import Path
folder = Path(os.environ["TRADEWIND_TELEMETRY"])
folder.mkdir(parents=True, exist_ok=True)
gpu = {"name": "NVIDIA H200", "busy": 0.93, "memory_used": 2 << 30, "memory_total": 8 << 30,
       "power_w": 512.5, "clock_mhz": 1980, "temperature_c": 61, "slowed": ["power"]}
for step in range(100000):
    told = {"rank": 0, "world": 1, "host": "node-1", "device": "cuda:0", "step": step, "steps": 40,
            "step_s": 0.5, "window_s": 20.0, "data": 0.8, "comm": 0.1, "loss": 2.5,
            "tokens_rate": 4096.0, "gpu": gpu}
    new = folder / "new"
    new.write_text(json.dumps(told))
    new.rename(folder / "0.json")
    Path(os.environ["TRADEWIND_PROGRESS"]).write_text(json.dumps({"step": step, "rate": 2.0}))
    time.sleep(0.5)
"""
WORK = """\
name: watched
work: {on: 1xT4, step: 500ms, steps: 100000}
limits: {deadline: 3d, budget: $500}
run: {command: python job.py}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRADEWIND_NOW", raising=False)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "work.yaml").write_text(WORK)
    return tmp_path


def tradewind(home: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", *words],
        cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def program(*words: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    with log.open("w") as stream:
        process = subprocess.Popen(words, stdout=stream, stderr=stream, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def asked(port: int, path: str, **query: str) -> Any:
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        found = json.load(answer)
    assert found["status"] == "success"
    return found["data"]


def test_a_real_prometheus_knows_what_the_dashboard_asks(home: Path) -> None:
    port, own = free_ports(2)
    run = json.loads(tradewind(home, "run", "work.yaml", "--local", "--detach", "--yes", "--json"))
    with ExitStack() as stack:
        stack.callback(tradewind, home, "stop", run["run"])
        stack.enter_context(
            program(sys.executable, "-m", "tradewind", "exporter", "--port", str(own),
                    "--every", "1", log=home / "exporter.log")
        )  # fmt: skip
        config = home / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: tradewind\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{own}']}}]\n"
        )
        stack.enter_context(
            program("prometheus", f"--config.file={config}", f"--storage.tsdb.path={home}/tsdb",
                    f"--web.listen-address=127.0.0.1:{port}", log=home / "prometheus.log")
        )  # fmt: skip

        def known(query: str) -> list[Any]:
            try:
                return list(asked(port, "query", query=query)["result"])
            except urllib.error.URLError:
                return []

        eventually(lambda: known("DCGM_FI_DEV_GPU_UTIL"), within_s=120)
        (gpu,) = known("DCGM_FI_DEV_GPU_UTIL")
        assert gpu["value"][1] == "93"
        assert gpu["metric"]["run"] == run["run"]
        assert gpu["metric"]["modelName"] == "NVIDIA H200"
        for query in dashboard.queries():
            found = known(query.replace("$project", ".*").replace("$run", ".*"))
            assert found, query
        (held,) = known("tradewind_run_bottleneck_ratio")
        assert held["metric"]["kind"] == "input-bound"
        # Every metric has a type and words, and nothing that its makers' linter finds.
        with urllib.request.urlopen(f"http://127.0.0.1:{own}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
        )
        found = (checked.stdout + checked.stderr).splitlines()
        # DCGM's own labels are as its users know them.
        assert [each for each in found if not each.startswith("DCGM_")] == []
        assert all("label names should be written in 'snake_case'" in each for each in found)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{own}/", timeout=10)
