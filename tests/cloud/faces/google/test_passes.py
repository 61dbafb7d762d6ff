"""Passes to Cloud Storage: tokens that the store's own code has exchanged at the equipment's STS,
shown by a machine that is nobody to Google."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cloud.faces.google.control import Control
from tradewind import store as stores
from tradewind.base.errors import NoAccess, NotFound, TradewindError
from tradewind.store import lending
from tradewind.store.base import Store
from tradewind.store.lending import held
from tradewind.store.lending.gcs import GcsLender

URL = "gs://lending/tw"
RUN = "run-1"
MINE = f"runs/{RUN}/logs/1/0/00000000"


@pytest.fixture(autouse=True)
def bucket(cloud: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in cloud.env.items():
        monkeypatch.setenv(name, value)
    if "lending" not in cloud.buckets():
        cloud.bucket("lending")
        cloud.bucket("lending-other")
    own = stores.open(URL)
    for key in (f"runs/{RUN}/journal/1", f"passes/{RUN}/l/0", "runs/run-2/journal/1", "keys/seed"):
        own.replace(key, b"x")


@pytest.fixture
def machine(cloud: Control, tmp_path: Path) -> Store:
    """The store, as a machine opens it that holds a pass."""
    lender = lending.lender(URL)
    path = tmp_path / "pass"
    held.keep(path, lender.lend(RUN, 3600), 0.0)
    return stores.open(URL, env={**lender.environment, held.VARIABLE: str(path)})


def test_it_opens_its_own_run(machine: Store) -> None:
    assert machine.get(f"runs/{RUN}/journal/1") == b"x"
    assert machine.get(f"passes/{RUN}/l/0") == b"x"
    assert machine.create(MINE, b"said") is not None
    machine.replace(MINE, b"said more")
    assert machine.list_after(f"runs/{RUN}/logs/") == [MINE]
    with pytest.raises(NotFound):
        machine.get(f"runs/{RUN}/logs/1/0/none")
    machine.delete(MINE)


@pytest.mark.parametrize("key", ["runs/run-2/journal/1", "keys/seed", "providers/gcp.json"])
def test_and_nothing_else_to_read(machine: Store, key: str) -> None:
    with pytest.raises(NoAccess):
        machine.get(key)


@pytest.mark.parametrize(
    "key",
    [f"runs/{RUN}/journal/2", f"passes/{RUN}/l/0", "runs/run-2/logs/1/0/0", "live/run-1", "kits/k"],
)
def test_nor_to_write(machine: Store, key: str) -> None:
    with pytest.raises(NoAccess):
        machine.replace(key, b"y")


def test_nor_to_list(machine: Store) -> None:
    with pytest.raises(NoAccess):
        machine.list_after("runs/")


def test_it_ends_with_the_token_that_it_was_made_from(cloud: Control, machine: Store) -> None:
    cloud.expire_tokens()
    with pytest.raises(TradewindError):
        machine.get(f"runs/{RUN}/journal/1")


def test_a_pass_lends_no_pass(cloud: Control) -> None:
    first = lending.lender(URL).lend(RUN, 3600).credentials["token"]
    again = GcsLender(URL, cloud.env, source=lambda: (first, 3600))
    with pytest.raises(NoAccess, match="downscoped already"):
        again.lend(RUN, 3600)
    stranger = GcsLender(URL, cloud.env, source=lambda: ("nobody's", 3600))
    with pytest.raises(NoAccess, match="invalid or expired"):
        stranger.lend(RUN, 3600)
