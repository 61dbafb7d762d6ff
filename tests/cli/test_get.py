"""`tradewind get`: output files of a real local run, listed and fetched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from tests.cli.conftest import Cli
from tests.cli.local_jobs import cleaned, job
from tradewind import store as stores
from tradewind.base import signing
from tradewind.controller import seed
from tradewind.journal import runs_store
from tradewind.model import places
from tradewind.model.outputs import OutputFile, Outputs
from tradewind.store.local import LocalStore

WRITES = "mkdir -p out; echo w > out/best.pt; echo 1 > log.csv; echo no > other.txt"


@pytest.fixture
def store(cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a run that has ended, and whose workload names outputs."""
    monkeypatch.delenv("TRADEWIND_NOW")
    with cleaned(home):
        work = job(tmp_path / "job", f"{WRITES}\n  outputs: [out, log.csv]")
        ran = cli("run", str(work), "--local", "--yes")
        assert ran.code == 0, ran.err
        monkeypatch.chdir(tmp_path)
        yield runs_store.run_ids(stores.open())[-1]


def test_outputs_are_listed_and_fetched(cli: Cli, store: str, tmp_path: Path) -> None:
    shown = cli("get", store)
    assert "log.csv" in shown.out
    assert "out/best.pt" in shown.out
    assert "other.txt" not in shown.out
    told = cli("get", store, "--json").json
    assert [(each["path"], each["bytes"], each["rank"]) for each in told] == [
        ("log.csv", 2, 0), ("out/best.pt", 2, 0),
    ]  # fmt: skip
    assert cli("get", store, "--to", "res").code == 0
    assert (tmp_path / "res/out/best.pt").read_text() == "w\n"
    assert "was there already" in cli("get", store, "--to", "res").out
    assert cli("get", store, "out/*.pt").code == 0
    assert (tmp_path / "out/best.pt").read_text() == "w\n"
    assert not (tmp_path / "log.csv").exists()
    wrong = cli("get", store, "best.pt")
    assert wrong.code == 3
    assert "out/best.pt" in wrong.err
    assert cli("get", store, "log.csv", "--rank", "1").code == 3


@pytest.mark.slow
def test_a_file_that_differs_is_not_overwritten(cli: Cli, store: str, tmp_path: Path) -> None:
    here = tmp_path / "res"
    here.mkdir()
    (here / "log.csv").write_text("mine")
    refused = cli("get", store, "--to", "res")
    assert refused.code == 2
    assert "log.csv" in refused.err
    assert "--force" in refused.err
    assert not (here / "out").exists()
    assert (here / "log.csv").read_text() == "mine"
    assert cli("get", store, "--to", "res", "--force").code == 0
    assert (here / "log.csv").read_text() == "1\n"
    # And never through a link that leads elsewhere.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (here / "log.csv").unlink()
    (here / "log.csv").symlink_to(elsewhere)
    assert cli("get", store, "--to", "res", "--force").code == 5
    assert elsewhere.read_text() == "precious"


@pytest.mark.slow
def test_lists_that_machines_made_up_are_no_harm(cli: Cli, store: str, tmp_path: Path) -> None:
    opened = stores.open()
    assert isinstance(opened, LocalStore)
    key = signing.key_of_run(seed.find(opened), store)

    def signed(data: bytes) -> bytes:
        return signing.signed(data, key, signing.OUTPUTS)

    real = signing.bare(opened.get(places.outputs(store, 0, 1)))
    # Of a leg and of a rank that never were, and of a path that was not asked for.
    opened.replace(places.outputs(store, 0, 7), signed(real.replace(b'"leg":1', b'"leg":7')))
    opened.replace(places.outputs(store, 5, 1), signed(real.replace(b'"rank":0', b'"rank":5')))
    opened.replace(places.outputs(store, 0, 1), signed(real.replace(b"log.csv", b".bashrc")))
    shown = cli("get", store, "--json").json
    assert [(each["path"], each["leg"], each["rank"]) for each in shown] == [("out/best.pt", 1, 0)]
    opened.replace(places.outputs(store, 0, 1), b"x" * 20_000_000)
    assert cli("get", store).code == 3
    assert cli("get", store, "--to", "res").code == 3
    assert not (tmp_path / "res").exists()


def test_a_list_that_no_machine_of_the_run_has_signed_is_not_served(
    cli: Cli, store: str, tmp_path: Path
) -> None:
    """Of a finished run, with the hash of what lies there: by any machine of the store."""
    opened = stores.open()
    assert isinstance(opened, LocalStore)
    place = places.outputs(store, 0, 1)
    foreign = b"foreign"
    opened.replace(places.output_files(store, 0) + "1-ab-1", foreign)
    file = OutputFile("log.csv", len(foreign), hashlib.sha256(foreign).hexdigest(), "1-ab-1")
    opened.replace(place, json.encode(Outputs(1, 0, 1.0, (file,))))
    refused = cli("get", store, "--to", "res")
    assert (refused.code, (tmp_path / "res").exists()) == (3, False)
    assert "has signed" in refused.err
    assert "--unsigned" in refused.err
    # The user's own word, for what an earlier Tradewind has brought.
    assert cli("get", store, "--to", "res", "--unsigned").code == 0
    assert (tmp_path / "res/log.csv").read_bytes() == foreign


def test_what_is_missing_is_said(cli: Cli, store: str, tmp_path: Path) -> None:
    assert cli("get", "nothing").code == 3
    none = cli("get", store, "--weights", "model.pt")
    assert none.code == 3
    assert "no checkpoint yet" in none.err
    assert cli("get", store, "--weights", "model.xyz").code == 2
    assert cli("get", store, "log.csv", "--weights", "m.pt").code == 2
    assert cli("get", store, "--part", "ema").code == 2
    (tmp_path / "m.pt").write_text("mine")
    assert cli("get", store, "--weights", "m.pt").code == 2
