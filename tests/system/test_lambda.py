"""A run on machines of Lambda that are real hosts: bought one by one, booted by user-data, fed from
a real S3 server, and ended by a controller, since nothing else would end their bill.

Known lie: machines are given keys to the store by variables, where real ones are lent passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cloud import server
from tests.cloud.control import Control
from tests.eventually import eventually
from tests.providers.lambda_cloud.machines import env, footprint, way
from tests.store import servers
from tradewind import store as stores
from tradewind.api.luggage import Packer
from tradewind.base import clock, steps
from tradewind.controller.controller import Controller
from tradewind.controller.drive import performer
from tradewind.controller.loop import Loop
from tradewind.journal import runs_store
from tradewind.ledger.postings import MACHINE, cost_of
from tradewind.model import places
from tradewind.model.run import Spec
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.links import Links
from tradewind.providers.lambda_cloud.api import Api
from tradewind.providers.lambda_cloud.cloud import Lambda
from tradewind.providers.lambda_cloud.facts import FACTS
from tradewind.providers.lambda_cloud.footprint import Footprint
from tradewind.providers.lambda_cloud.provider import LambdaProvider
from tradewind.providers.rest import Pace
from tradewind.store.base import Store
from tradewind.supervisor import bundle

pytestmark = pytest.mark.system
STORE = "s3://runs/team"


class Trusted(Lambda):
    """Its machines are somebody to the store."""

    schemes: tuple[str, ...] = ("s3",)
    pythons: tuple[str, ...] = ()
    older_s = 0

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)

    def environment(self, footprint: Footprint, env: Mapping[str, str]) -> dict[str, str]:
        return self._variables

    def links(self, footprint: Footprint, store_url: str) -> Links:
        return Links(Account(), footprint, store_url)  # type: ignore[arg-type]  # its region


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Control]:
    face = "tests.cloud.faces.lambda_cloud"
    with server.running(tmp_path / "lambda", face, Control, "netns") as control:
        yield control


@pytest.fixture
def variables(
    cloud: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    (tmp_path / "s3").mkdir()
    with servers.s3(tmp_path / "s3") as s3:
        port = int(s3["AWS_ENDPOINT_URL"].rpartition(":")[2])
        url = cloud.s3(port)
        found = {name: s3[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        found |= {"AWS_REGION": "us-west-1", "AWS_ENDPOINT_URL_S3": url}
        found |= {"TRADEWIND_PLAIN_HTTP": cloud.host}
        for name, value in {**found, "TRADEWIND_HOME": str(tmp_path / "home")}.items():
            monkeypatch.setenv(name, value)
        yield found


def submitted(store: Store, folder: Path, command: str, nodes: int) -> str:
    run_id = clock.new_id("count")
    (folder / "job").mkdir()
    packed = bundle.pack(folder / "job", folder / "job.tar.gz")
    store.upload(places.bundle(run_id), packed.path)
    on = way(nodes=nodes, facts=replace(FACTS, listing_lag_s=5), start_s=5.0)
    spec = Spec(
        name="count",
        work=10.0,
        steps=False,
        ways=(on,),
        budget=50_000_000,
        job={
            "command": command,
            "bundle": places.bundle(run_id),
            "bundle_sha256": packed.sha256,
        },
    )
    controller = Controller("ctl-test", ("lambda",), clock=clock.epoch, watch=clock.epoch)
    assert steps.run(controller.submit(run_id, spec), performer(store, {}))
    return run_id


def test_a_run_of_two_machines_from_its_launch_to_the_bill(
    cloud: Control, variables: dict[str, str], tmp_path: Path
) -> None:
    store = stores.open(STORE)
    made = footprint(cloud)
    pack = Packer(store, Trusted(variables), made)
    rented = LambdaProvider(Api(env(cloud.url), Pace({})), made, STORE, pack)
    run_id = submitted(store, tmp_path, "echo trained by $TRADEWIND_RANK", nodes=2)
    loop = Loop(store, {"lambda": rented}, tmp_path / "home", pass_s=0.5)
    told: list[str] = []

    def wanted() -> bool:
        return runs_store.load(store, run_id).state.phase != "closed"

    until = clock.monotonic() + 240
    loop.watch(
        lambda: wanted() and clock.monotonic() < until,
        tell=lambda troubles: told.extend(f"{where}: {error}" for where, error in troubles),
    )
    loaded = runs_store.load(store, run_id)
    events = [event for commit in loaded.commits for event in commit.events]
    assert loaded.state.outcome == "succeeded", [*map(str, events), *told]
    output = "".join(store.get(key).decode() for key in store.list_after(places.logs(run_id)))
    assert output.count("trained by") == 2
    bill = cloud.bill()["machines"]
    eventually(lambda: cloud.left() == [])
    assert len(bill) == 2
    assert cloud.calls("terminate")  # they have shut down by themselves, which ends nothing
    postings = [each for each in cost_of(run_id, events).postings if each.kind == MACHINE]
    assert {each.machine_id for each in postings} == set(loaded.state.machines)
    # Ours counts from the launch, theirs from when the machine was up.
    due = sum(round(1e6 * row["usd"]) for row in bill)
    assert due <= sum(each.micros for each in postings) <= due + 2 * 2 * 750_000 // 60
