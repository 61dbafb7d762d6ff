"""Machines on demand that are up for weeks, and machines of a commitment: the ledger has the
discounts for sustained and for committed use that the emulated bill has. On equipment of its own,
whose clock is put forward."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google.control import Control, running
from tests.lifecycle.builders import SPEC
from tests.providers.gcp.machines import REGION, ZONE, argument, footprint, open_gcp, prepare, way
from tests.system.google_books import due
from tradewind.catalog import sustained as schedules
from tradewind.ledger import sustained
from tradewind.ledger.postings import MACHINE, SUSTAINED, RunCost, cost_of
from tradewind.model.event import Event, LegRequested, MachineEnded, MachinesFound, Submitted
from tradewind.model.run import Machine, Request, Way
from tradewind.providers.gcp.api import Compute, Google
from tradewind.providers.gcp.operations import Operation
from tradewind.providers.gcp.provider import Both

KIND = "n1-standard-8+1xT4"
STEPS = (("0", "1"), ("0.25", "0.8"), ("0.5", "0.6"), ("0.75", "0.4"))
"""As Google's page has them, and not as our table does."""
DAY_S = 86_400
WAY = way(
    instance_type=KIND,
    zone=ZONE,
    price=730_001 + 13_889 + 5_000,
    disk_price=13_889,
    address_price=5_000,
    sustained=schedules.steps("gcp", KIND),
)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    with running(tmp_path) as control:
        control.dials(pending_s=0, shutting_down_s=0, operation_s=0.0)
        control.hold()
        control.on_demand_price(KIND, 0.730001)
        control.sustained("n1-", STEPS)
        for name, value in control.env.items():
            monkeypatch.setenv(name, value)
        prepare(control)
        yield control


class Run:
    """Its journal, as a controller would write it."""

    def __init__(self, cloud: Control, run_id: str) -> None:
        self._cloud, self._id, self._legs = cloud, run_id, 0
        self._events: list[Event] = [Submitted(run_id=run_id, spec=replace(SPEC, ways=(WAY,)))]

    def launch(self, on: Way = WAY, days: int = 90) -> Machine:
        self._legs += 1
        request = Request(
            launch_id=f"{self._id}-{self._legs}", run_id=self._id, leg=self._legs, way=on,
            hard_stop_s=days * DAY_S,
        )  # fmt: skip
        (machine,) = self._rented().launch(request, 1)
        self._events += [
            LegRequested(request=request, reason="r"),
            MachinesFound(machines=(machine,), reason="r"),
        ]
        return machine

    def end(self, machine: Machine) -> None:
        rented = self._rented()
        rented.terminate([machine.machine_id])
        (ended,) = [
            each
            for each in rented.list_machines().machines
            if each.machine_id == machine.machine_id and each.ended_s is not None
        ]
        self._events.append(MachineEnded(machine=ended, reason="r"))

    def cost(self) -> RunCost:
        return cost_of(self._id, self._events, int(self._cloud.now()))

    def _rented(self) -> Both:
        """A token of days ago is none."""
        return open_gcp(argument(self._cloud, footprint(), "gs://b/lasting"))


def to_the_first(cloud: Control) -> None:
    now = datetime.fromtimestamp(cloud.now(), UTC)
    first = (now.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0)
    cloud.advance((first - now).total_seconds())


def test_the_ledger_is_the_bill(cloud: Control) -> None:
    one, two = Run(cloud, "run-1"), Run(cloud, "run-2")
    to_the_first(cloud)
    cloud.advance(7 * 3600 + 11)
    first = one.launch()
    cloud.advance(5 * DAY_S)
    beside = two.launch()
    cloud.advance(10 * DAY_S + 7)
    two.end(beside)
    cloud.advance(3 * DAY_S)
    one.end(first)
    after = two.launch()  # one after the other, they count as one
    spot = one.launch(way(instance_type=KIND, market="spot"))
    cloud.advance(20 * DAY_S)  # into the next month
    two.end(after)
    one.end(spot)

    whole = [one.cost(), two.cost()]
    made = sustained.credited(whole)
    told = cloud.bill()
    assert {row["region"] for row in told["sustained"]} == {REGION}
    assert len(told["sustained"]) == 2  # months
    off = sum(row["micros"] for row in told["sustained"])
    assert off == sum(-p.micros for run in made for p in run.postings if p.kind == SUSTAINED) > 0
    # A run alone does not know what the other has used before.
    alone = [run for each in whole for run in sustained.credited([each])]
    assert 0 < sum(run.micros for run in whole) - sum(run.micros for run in alone) < off
    # And all of it: machines, disks, addresses, less the discount.
    volumes = {each["machine"]: each for each in told["volumes"]}
    bill = sum(due(row, volumes[row["id"]]) for row in told["machines"] if row["market"] != "spot")
    kept = [p for run in made for p in run.postings if p.market != "spot"]
    assert {p.kind for p in kept} == {MACHINE, SUSTAINED}
    assert sum(p.micros for p in kept) == bill - off


def test_whoever_has_no_such_discount_pays_all(cloud: Control) -> None:
    cloud.sustained("n1-", ())
    to_the_first(cloud)
    one = Run(cloud, "run-1")
    machine = one.launch(replace(WAY, sustained=()))
    cloud.advance(20 * DAY_S)
    one.end(machine)
    whole = one.cost()
    assert not sustained.is_any([whole])
    assert sustained.credited([whole]) == [whole]
    assert cloud.bill()["sustained"] == []


def test_a_commitment_is_a_reservation_at_its_price(cloud: Control) -> None:
    """Of GPUs Google sells commitments with a reservation only; what is not of it is not covered,
    and nothing of it is discounted a second time."""
    reserve(cloud, "g2-standard-4", 1)
    cloud.on_demand_price("g2-standard-4", 0.706832)
    cloud.on_demand_price("g2-standard-4@reserved", 0.445304)
    held = way(market="reserved", price=445_304 + 13_889 + 5_000, address_price=5_000)
    listed = way(price=706_832 + 13_889 + 5_000, address_price=5_000)
    one, two = Run(cloud, "run-1"), Run(cloud, "run-2")
    to_the_first(cloud)
    machines = one.launch(held), two.launch(listed)
    cloud.advance(20 * DAY_S + 3)
    one.end(machines[0])
    two.end(machines[1])
    told = cloud.bill()
    volumes = {each["machine"]: each for each in told["volumes"]}
    due_of = {row["name"]: due(row, volumes[row["id"]]) for row in told["machines"]}
    for run, machine in zip((one, two), machines, strict=True):
        (name,) = [each for each in due_of if machine.machine_id.endswith(each)]
        assert sum(p.micros for p in run.cost().postings) == due_of[name]
    assert len(set(due_of.values())) == 2
    assert told["sustained"] == []


def reserve(cloud: Control, machine_type: str, count: int) -> None:
    body = {
        "name": "held",
        "specificReservationRequired": True,
        "specificReservation": {
            "count": str(count), "instanceProperties": {"machineType": machine_type},
        },
    }  # fmt: skip
    compute = Compute(Google(), cloud.project)
    path = f"/projects/{cloud.project}/zones/{ZONE}/reservations"
    made = compute.google.rest("compute").send("POST", path, body, Operation, "reserving")
    compute.done(made, "reserving")


@pytest.mark.parametrize("kind", ["a2-highgpu-1g", "a3-megagpu-8g", "g2-standard-4", "tpu-v5p-8"])
def test_newer_types_have_none(kind: str) -> None:
    assert schedules.steps("gcp", kind) == ()
