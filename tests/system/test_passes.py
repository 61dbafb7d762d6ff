"""Trainings on machines that are nobody to the store, and hold nothing but a pass: longer than the
first one lasts, and with nobody there to renew it. The server, its STS and its policies are real
(SeaweedFS); that passes end is the door's doing, as no STS lends for less than fifteen minutes."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.lifecycle.builders import WAY
from tests.store import servers
from tests.store.door import serving
from tests.system.nobody import ROLE, EndingPasses, World
from tradewind import store
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import LegOver
from tradewind.model.run import Facts, Spec
from tradewind.store.base import Store
from tradewind.store.lending import held

pytestmark = pytest.mark.system
RESULTS: list[str] = []
"""What the weights are, of a training in one leg."""

PASS_S = 1500
"""Of a machine's minutes, which pass in seconds."""
WAYS = (
    replace(
        WAY,
        provider="nobody",
        pass_s=PASS_S,
        facts=Facts(tokens=True, boot_timeout_s=6000, listing_lag_s=1),
    ),
)
JOB = """
import hashlib, os, time
from pathlib import Path
import torch
import tradewind.torch as tw

torch.manual_seed(7)
x = torch.randn(64, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = torch.utils.data.DataLoader(x, batch_size=4, shuffle=True)
session = tw.session(model=model, optimizer=optimizer, data=loader)
go, save = Path(os.environ["GO"]), Path(os.environ["TRADEWIND_SAVE"])
for batch in session.batches(epochs=3):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    session.step()
    if session.step_number == 20:
        print("waits at step", session.step_number, flush=True)
        while not go.exists() and not save.exists():
            time.sleep(0.02)
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("ended with", hashlib.sha256(weights).hexdigest(), flush=True)
session.finish()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3Server]:
    made = servers.S3Server(tmp_path_factory.mktemp("weed"), lends=True)
    made.start()
    try:
        servers.make_bucket(made.env)
        yield made
    finally:
        made.stop()


@pytest.fixture
def world(
    server: servers.S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    class Before(EndingPasses):
        inner = int(server.env["AWS_ENDPOINT_URL"].rpartition(":")[2])

    Before.ends, Before.used, Before.refused = {}, [], []
    with serving(Before) as port:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("TRADEWIND_LENDING_ROLE", ROLE)
        made = World(tmp_path, store.open(f"s3://runs/{tmp_path.name}"), Before)
        try:
            yield made
        finally:
            made.cloud.end()


def submitted(world: World, folder: Path) -> Path:
    """The run; its job goes on at step 20 when the file is there."""
    (folder / "job.py").write_text(JOB)
    go = folder / "go"
    job = {"command": f"{sys.executable} {folder / 'job.py'}", "env": {"GO": str(go)}}
    world.submit("run-1", Spec(name="test", work=48.0, ways=WAYS, job=job))
    return go


def weights(world: World, leg: int) -> str:
    found = re.search(r"ended with (\w+)", world.spool(leg))
    assert found, world.said()
    return found[1]


def nothing_is_told_of_passes(world: World, where: Store, folders: list[Path]) -> None:
    """In journals, logs, heartbeats, in what machines were told, and in processes' environments."""
    tokens = [*world.door.ends]
    assert tokens
    texts = {key: where.get(key) for key in where.list_after("runs/") if "/shards/" not in key}
    for folder in folders:
        texts |= {str(p): p.read_bytes() for p in folder.iterdir() if p.is_file()}
        texts.pop(str(folder / "pass.json"))
        assert (folder / "pass.json").stat().st_mode & 0o777 == 0o600
    for name, data in texts.items():
        assert not any(token.encode() in data for token in tokens), name


def test_longer_than_its_first_pass_lasts(world: World, tmp_path: Path) -> None:
    go = submitted(world, tmp_path)
    world.attend(lambda: "waits at step 20" in world.spool())
    (first,) = list(world.door.ends)[:1]
    environment = Path(f"/proc/{world.cloud.processes[world.machine()].pid}/environ").read_bytes()
    assert first.encode() not in environment
    world.attend(lambda: time.monotonic() > world.door.ends[first])
    before = world.beat()
    assert before is not None

    def alive() -> bool:
        now = world.beat()
        return now is not None and now.beat > before.beat + 3

    world.attend(alive)
    kept = held.read(world.cloud.folders[world.machine()] / "pass.json")
    assert kept.credentials["token"] != first
    assert len(world.door.used) >= 2
    go.touch()
    world.attend(lambda: world.state.phase == "closed")
    assert (world.state.outcome, len(world.state.requests)) == ("succeeded", 1)
    assert world.door.refused == []
    assert world.store.list_after("passes/") == []
    nothing_is_told_of_passes(world, world.store, [*world.cloud.folders.values()])
    RESULTS.append(weights(world, 1))


def test_nobody_renews_it(world: World, tmp_path: Path) -> None:
    go = submitted(world, tmp_path)
    world.attend(lambda: "waits at step 20" in world.spool() and world.state.leg is not None)
    world.attend(lambda: world.state.leg is not None and world.state.leg.state == "running")
    process = world.cloud.processes[world.machine()]
    eventually(lambda: process.poll() is not None, within_s=240)
    assert process.returncode == 0
    assert world.door.refused == []  # it could write to the last
    told = world.beat()
    assert told is not None
    assert told.doing == "stopped"
    assert told.reason == "its pass to the store ends, and no controller renewed it"
    assert told.saved >= 20
    go.touch()
    world.attend(lambda: world.state.phase == "closed")  # somebody looks again
    assert (world.state.outcome, len(world.state.requests)) == ("succeeded", 2)
    events = [event for c in journal.read(world.store, "run-1") for event in c.events]
    causes = [event.cause for event in events if isinstance(event, LegOver)]
    assert causes == ["unattended", "finished"]
    assert "waits at step 20" not in world.spool(2)  # it went on from there
    assert world.store.list_after("passes/") == []
    nothing_is_told_of_passes(world, world.store, [*world.cloud.folders.values()])
    if RESULTS:
        assert weights(world, 2) == RESULTS[0]
    assert world.store.list_after(places.LIVE) == []
