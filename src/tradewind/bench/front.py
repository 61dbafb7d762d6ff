"""What the front costs: HAProxy as we configure it, before a server that answers at once.

The server is a second HAProxy that returns a small constant answer, and the load comes from `wrk`:
neither is written in Python, so that what is measured is the front. It has a key to look up, a
rate to count and a log to write, as in production, and one thread.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import MissingExtra, SourceFailed
from tradewind.front import runner
from tradewind.front.routes import Backend, Front, Key
from tradewind.front.runner import Runner
from tradewind.front.stats import Health

OVERHEAD_LIMIT_MS = 1.0
RATE_LIMIT = 10_000
_SECRET = "the-key-of-a-measurement"  # guards nothing, and is gone with the folder
_BODY = '{"id":"x","object":"text_completion","choices":[{"text":"yes"}]}'
_ENGINE = """\
global
    nbthread 1
defaults
    mode http
    timeout client 60s
    timeout connect 5s
    timeout server 60s
frontend engine
    bind 127.0.0.1:{port}
    http-request return status 200 content-type application/json string '{body}'
"""
_SCRIPT = """\
wrk.method = "POST"
wrk.body = '{{"model":"m","prompt":"the river","max_tokens":1}}'
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer {secret}"
"""


def measure(seconds: float = 5.0, repeats: int = 3) -> dict[str, Any]:
    """Rounds in turn, alone and behind the front; medians of the rounds."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise MissingExtra("wrk, which makes the load, is not installed", hint="apt install wrk")
    with tempfile.TemporaryDirectory(prefix="tw-front-") as name:
        folder = Path(name)
        (folder / "ask.lua").write_text(_SCRIPT.format(secret=_SECRET))
        engine, front = _free_ports(2)
        with _engine(folder, engine), _front(folder, front, engine) as running:
            return _rounds(folder, wrk, engine, front, running, seconds, repeats)


def _rounds(
    folder: Path, wrk: str, engine: int, front: int, running: Runner, seconds: float, repeats: int
) -> dict[str, Any]:
    light: dict[int, list[dict[str, float]]] = {engine: [], front: []}
    busy: list[dict[str, float]] = []
    for _ in range(repeats):
        for port, rounds in light.items():
            rounds.append(_wrk(wrk, folder, port, 2, seconds))
        before = _cpu_s(running)
        found = _wrk(wrk, folder, front, 64, seconds)
        busy.append({**found, "cpu_s": _cpu_s(running) - before})
    middle = {
        port: {name: median(each[name] for each in rounds) for name in ("p50_ms", "p99_ms")}
        for port, rounds in light.items()
    }
    over = {name: middle[front][name] - middle[engine][name] for name in ("p50_ms", "p99_ms")}
    per_core = median(each["requests"] / each["cpu_s"] for each in busy)
    return {
        "alone_p50_ms": round(middle[engine]["p50_ms"], 3),
        "alone_p99_ms": round(middle[engine]["p99_ms"], 3),
        "front_p50_ms": round(middle[front]["p50_ms"], 3),
        "front_p99_ms": round(middle[front]["p99_ms"], 3),
        "overhead_p50_ms": round(over["p50_ms"], 3),
        "overhead_p99_ms": round(over["p99_ms"], 3),
        "requests_per_s": round(median(each["requests_per_s"] for each in busy)),
        "requests_per_cpu_s": round(per_core),
        "failed": int(sum(each["failed"] for each in busy + light[front] + light[engine])),
        "cores": os.cpu_count() or 1,
        "load": round(os.getloadavg()[0], 1),
        "haproxy": _version(),
        "overhead_limit_ms": OVERHEAD_LIMIT_MS,
        "rate_limit": RATE_LIMIT,
        "seconds": seconds,
        "repeats": repeats,
    }


@contextmanager
def _engine(folder: Path, port: int) -> Iterator[None]:
    path = folder / "engine.cfg"
    path.write_text(_ENGINE.format(port=port, body=_BODY))
    process = subprocess.Popen(
        [runner.program(), "-db", "-f", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _front(folder: Path, port: int, engine: int) -> Iterator[Runner]:
    running = Runner(folder / "front")
    # A limit that is never reached is looked up and counted all the same.
    key = Key.of("bench", _SECRET, requests_per_s=1e6)
    running.start(Front(port, keys=(key,), health_path="/", threads=1))
    try:
        backends = [Backend("r1", "127.0.0.1", engine)]
        until = clock.stopwatch() + 30
        while not any(each.health is Health.UP for each in running.look().replicas):
            if clock.stopwatch() > until:
                raise SourceFailed("the server of the measurement did not come up behind the front")
            running.apply(backends)
            clock.sleep(0.05)
        yield running
    finally:
        running.stop()


def _wrk(wrk: str, folder: Path, port: int, connections: int, seconds: float) -> dict[str, float]:
    done = subprocess.run(
        [
            wrk, "--threads", "1", "--connections", str(connections), "--latency",
            "--duration", f"{max(round(seconds), 1)}s", "--script", str(folder / "ask.lua"),
            f"http://127.0.0.1:{port}/v1/completions",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return read(done.stdout + done.stderr)


def read(text: str) -> dict[str, float]:
    """What wrk printed. SourceFailed where it is something else."""
    units = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
    shares = dict(re.findall(r"^\s+(50|99)%\s+(\S+)\s*$", text, re.MULTILINE))
    total = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    if total is None or rate is None or set(shares) != {"50", "99"}:
        raise SourceFailed(f"wrk did not measure: {' '.join(text.split())[:300]}")
    found = {}
    for share, value in shares.items():
        number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", value).groups()  # type: ignore[union-attr]
        found[f"p{share}_ms"] = float(number) * units[unit]
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    broken = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text
    )
    failed = int(refused[1]) if refused else 0
    failed += sum(map(int, broken.groups())) if broken else 0
    return {
        **found,
        "requests": float(total[1]),
        "requests_per_s": float(rate[1]),
        "failed": float(failed),
    }


def _cpu_s(running: Runner) -> float:
    """Of the front's worker, whatever else the machine does."""
    info = running.command("show info")
    pid = re.search(r"^Pid: (\d+)", info, re.MULTILINE)
    assert pid is not None
    fields = Path(f"/proc/{pid[1]}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _version() -> str:
    done = subprocess.run([runner.program(), "-v"], capture_output=True, text=True, check=False)
    return done.stdout.split()[2] if len(done.stdout.split()) > 2 else "?"


def _free_ports(number: int) -> list[int]:
    import socket

    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
