"""What exists in moto, told late where a test wants that, and written down for the bill.

Moto's backend is changed in place: terminations go through the world, listings leave out what is
too new, and volumes and network interfaces are noted as they come and go.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.cloud.faces.ec2.account import Account
from tests.cloud.faces.ec2.checks import refuse
from tests.cloud.world import Thing

_LATE = ("DescribeInstances", "DescribeInstanceStatus")


def install(account: Account) -> None:
    _filters()
    _ends(account)
    _late(account)
    _noted(account)


def _filters() -> None:
    from moto.ec2 import utils

    utils.filter_dict_attribute_mapping |= {
        "client-token": "client_token",
        "instance-lifecycle": "lifecycle",
        "placement-group-name": "placement.group_name",
        "spot-instance-request-id": "spot_instance_request_id",
    }


def _ends(account: Account) -> None:
    world = account.world
    from moto.ec2.models.instances import Instance

    Instance.moto_terminate = Instance.terminate  # type: ignore[attr-defined]
    Instance.spot_instance_request_id = None  # type: ignore[attr-defined]
    Instance.moto_stop = Instance.stop  # type: ignore[attr-defined]

    def terminate(instance: Any) -> Any:
        before = copy.copy(instance._state)
        machine = world.machines[instance.id]
        if machine.ended_by in ("stopped", "inside") and before.name == "stopped":
            instance.moto_terminate()
            world.discard(machine)
        else:
            world.end(machine, "user")
        return before

    def stop(instance: Any) -> Any:
        before = instance.moto_stop()
        world.stop(world.machines[instance.id])
        return before

    def start(instance: Any) -> Any:
        raise refuse("UnsupportedOperation", "this equipment starts no machine a second time")

    Instance.terminate = terminate  # type: ignore[method-assign, assignment]
    Instance.stop = stop  # type: ignore[method-assign, assignment]
    Instance.start = start  # type: ignore[method-assign, assignment]


def _late(account: Account) -> None:
    world = account.world
    from moto.ec2.models import EC2Backend
    from moto.ec2.utils import filter_reservations

    def all_reservations(backend: Any, filters: Any = None) -> Any:
        found = [copy.copy(each) for each in backend.reservations.values()]
        if account.asked.get("Action") in _LATE:
            now = world.now()
            for each in found:
                each.instances = [
                    one for one in each.instances if world.machines[one.id].listed_from <= now
                ]
            found = [each for each in found if each.instances]
        return found if filters is None else filter_reservations(found, filters)

    EC2Backend.all_reservations = all_reservations  # type: ignore[method-assign, assignment]


def _noted(account: Account) -> None:
    world = account.world
    from moto.ec2.models import EC2Backend

    make_volume, drop_volume = EC2Backend.create_volume, EC2Backend.delete_volume
    make_card = EC2Backend.create_network_interface
    drop_card = EC2Backend.delete_network_interface

    def note(sort: str, region: str, made: Any, gb: int = 0) -> Any:
        world.things[made.id] = Thing(made.id, sort, region, world.now(), gb=gb)
        return made

    def gone(what: str) -> None:
        if what in world.things:
            ended = world.now() if account.ending_at is None else account.ending_at
            world.things[what].gone = ended

    def create_volume(backend: Any, *args: Any, **more: Any) -> Any:
        made = make_volume(backend, *args, **more)
        return note("volume", backend.region_name, made, int(made.size))

    def delete_volume(backend: Any, volume_id: str) -> Any:
        volume = drop_volume(backend, volume_id)
        gone(volume_id)
        return volume

    def create_network_interface(backend: Any, *args: Any, **more: Any) -> Any:
        made = make_card(backend, *args, **more)
        return note("network-interface", backend.region_name, made)

    def delete_network_interface(backend: Any, eni_id: str) -> None:
        drop_card(backend, eni_id)
        gone(eni_id)

    EC2Backend.create_volume = create_volume  # type: ignore[method-assign, assignment]
    EC2Backend.delete_volume = delete_volume  # type: ignore[method-assign, assignment]
    EC2Backend.create_network_interface = create_network_interface  # type: ignore[method-assign, assignment]
    EC2Backend.delete_network_interface = delete_network_interface  # type: ignore[method-assign, assignment]
