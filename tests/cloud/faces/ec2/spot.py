"""The spot request of a spot machine: moto makes none for RunInstances, and its own never change.

Known lie: requests are one-time; a persistent one is not fulfilled anew.
"""

from __future__ import annotations

from typing import Any

from moto.ec2.models.spot_requests import LaunchSpecification, SpotInstanceRequest
from moto.ec2.utils import random_spot_request_id

from tests.cloud.faces.ec2.times import moment

_WORDS = {
    "fulfilled": "Your Spot request is fulfilled.",
    "marked-for-termination": "Your Spot Instance is marked for termination.",
    "instance-terminated-no-capacity": "Your Spot Instance was terminated because there is no Spot "
    "capacity available that matches your request.",
    "instance-terminated-by-user": "Spot Instance terminated due to user-initiated termination.",
}


class Request(SpotInstanceRequest):
    """Its parent would launch a machine; this one is of a machine that was launched."""

    def __init__(self, backend: Any, instance: Any, now: float) -> None:
        self.ec2_backend = backend
        self.id = random_spot_request_id()
        self.instance = instance
        self.price = ""
        self.type = "one-time"
        self.valid_from = self.valid_until = self.launch_group = None
        self.availability_zone_group = None
        self.instance_interruption_behaviour = "terminate"
        self.launched_availability_zone = instance.placement.zone
        self.launch_specification = LaunchSpecification(
            kernel_id=None,
            ramdisk_id=None,
            image_id=instance.image_id,
            key_name=instance.key_name,
            instance_type=instance.instance_type,
            placement=instance.placement.zone,
            monitored=False,
            subnet_id=instance.subnet_id,
        )
        self._made = now
        self.say("active", "fulfilled", now)

    def say(self, state: str, code: str, now: float) -> None:
        self.state, self._status_code, self._updated = state, code, now

    @property
    def status(self) -> dict[str, Any]:
        code = self._status_code
        return {"Code": code, "Message": _WORDS[code], "UpdateTime": moment(int(self._updated))}

    @property
    def create_time(self) -> Any:
        return moment(int(self._made))

    def get_filter_value(self, filter_name: str, method_name: str | None = None) -> Any:
        known = {
            "instance-id": self.instance.id,
            "status-code": self._status_code,
            "type": self.type,
            "launched-availability-zone": self.launched_availability_zone,
        }
        if filter_name in known:
            return known[filter_name]
        return super().get_filter_value(filter_name, method_name)


def request_for(backend: Any, instance: Any, now: float) -> Request:
    request = Request(backend, instance, now)
    backend.spot_instance_requests[request.id] = request
    instance.spot_instance_request_id = request.id
    return request
