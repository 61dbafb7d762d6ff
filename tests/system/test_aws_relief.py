"""On EC2's machines: the next ones come up while the old ones save."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.system.books import is_paid_and_gone
from tests.system.rented import a_world
from tradewind.base import clock, steps
from tradewind.controller.controller import Controller
from tradewind.controller.drive import performer
from tradewind.model.event import LegDraining, LegOver, LegRequested, MachinesFound
from tradewind.model.run import Spec

pytestmark = pytest.mark.system
SAVES_S = 25
JOB = f"""
if [ "$TRADEWIND_LEG" != 1 ]; then echo leg $TRADEWIND_LEG ends well; exit 0; fi
trap 'echo saves; sleep {SAVES_S} & wait; echo saved; exit 0' TERM
echo works; while true; do sleep 0.2; done
"""


@pytest.mark.long
def test_the_next_machine_comes_up_while_the_old_one_saves(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        run_id = clock.new_id("slow")
        spec = Spec(
            name="slow",
            work=1000.0,
            steps=False,
            ways=tuple(replace(way, start_s=130.0) for way in world.ways(nodes=1)),
            deadline_s=clock.now().timestamp() + 7200,
            job={"command": JOB},
        )
        submitter = Controller("ctl-test", ("aws",), clock=clock.epoch, watch=clock.epoch)
        assert steps.run(submitter.submit(run_id, spec), performer(world.store, {}))
        controller = world.watch(run_id)
        eventually(lambda: "works" in world.output(run_id), within_s=120)
        (name,) = world.loaded(run_id).state.claimed
        world.cloud.interrupt(name.removeprefix("aws-us-east-1-"), notice_s=120)
        loaded = world.finished(run_id, within_s=180)
        controller.wait(60)

        order = [event for commit in loaded.commits for event in commit.events]
        kinds = (LegDraining, LegRequested, MachinesFound, LegOver)
        told = [type(event) for event in order if isinstance(event, kinds)]
        assert told == [
            LegRequested, MachinesFound,  # the first
            LegDraining, LegRequested, MachinesFound,  # the next, while the first one saves
            LegOver, LegOver,
        ]  # fmt: skip
        first, second = loaded.state.requests[1], loaded.state.requests[2]
        assert (first.relieves, second.relieves) == (0, 1)
        assert first.way.zone != second.way.zone
        old, new = (each.machine for each in loaded.state.machines.values())
        assert old.ended_s is not None
        assert new.launched_s < old.ended_s - 5  # both were up
        text = world.output(run_id)
        assert text.index("saved") < text.index("leg 2 ends well")
        is_paid_and_gone(world, run_id)
        # Restarted by whomever, they would have ended themselves.
        again = sorted(tmp_path.glob("ec2/**/var/lib/cloud/scripts/per-boot/tradewind"))
        assert [path.read_text() for path in again] == ["#!/bin/sh\nshutdown -h now\n"] * 2
