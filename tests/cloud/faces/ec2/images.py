"""Images that users of GPUs look for, in every region, and the public parameters that name them.

Known lie: there are few, their ids are the same in all regions, and what boots is this computer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

_DLAMI = "/aws/service/deeplearning/ami"
_UBUNTU = "/aws/service/canonical/ubuntu/server"
_BASE = "base-oss-nvidia-driver-gpu-ubuntu"
_TORCH = "oss-nvidia-driver-gpu-pytorch"

IMAGES = {
    "ami-0d1000000000022ba": (
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)",
        "x86_64",
    ),
    "ami-0d1000000000024ba": (
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04)",
        "x86_64",
    ),
    "ami-0d100000000022a64": (
        "Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)",
        "arm64",
    ),
    "ami-0d100000000027e22": (
        "Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.7 (Ubuntu 22.04)",
        "x86_64",
    ),
    "ami-0b000000000022a4d": (
        "ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-20261101",
        "x86_64",
    ),
    "ami-0b000000000024a4d": (
        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20261101",
        "x86_64",
    ),
    "ami-0b000000000024a64": (
        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-arm64-server-20261101",
        "arm64",
    ),
}

PARAMETERS = {
    f"{_DLAMI}/x86_64/{_BASE}-22.04/latest/ami-id": "ami-0d1000000000022ba",
    f"{_DLAMI}/x86_64/{_BASE}-24.04/latest/ami-id": "ami-0d1000000000024ba",
    f"{_DLAMI}/arm64/{_BASE}-22.04/latest/ami-id": "ami-0d100000000022a64",
    f"{_DLAMI}/x86_64/{_TORCH}-2.7-ubuntu-22.04/latest/ami-id": "ami-0d100000000027e22",
    f"{_UBUNTU}/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id": "ami-0b000000000022a4d",
    f"{_UBUNTU}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id": "ami-0b000000000024a4d",
    f"{_UBUNTU}/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id": "ami-0b000000000024a64",
}


class Images:
    """Put in place region by region, when a region is first asked."""

    def __init__(self) -> None:
        self._ready: set[str] = set()
        self.parameters = dict(PARAMETERS)

    def put(self, name: str, image: str) -> None:
        self.parameters[name] = image
        self._ready.clear()

    def ready(self, region: str) -> None:
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.ec2.models import ec2_backends
        from moto.ssm.models import ssm_backends

        if region in self._ready or region not in ec2_backends[DEFAULT_ACCOUNT_ID]:
            return
        self._ready.add(region)
        self._register(ec2_backends[DEFAULT_ACCOUNT_ID][region])
        self._name(ssm_backends[DEFAULT_ACCOUNT_ID][region])

    def _register(self, backend: Any) -> None:
        from moto.ec2.models.amis import Ami

        for number, (name, processor) in IMAGES.items():
            if number not in backend.amis:
                backend.amis[number] = Ami(
                    backend,
                    number,
                    name=name,
                    description=name,
                    owner_id="898082745236" if "Deep" in name else "099720109477",
                    owner_alias="amazon",
                    public=True,
                    virtualization_type="hvm",
                    hypervisor="xen",
                    architecture=processor,
                    root_device_type="ebs",
                    root_device_name="/dev/sda1",
                    region_name=f"{backend.region_name}a",
                    creation_date=datetime(2026, 11, 1),  # noqa: DTZ001 (moto's are so)
                )

    def _name(self, backend: Any) -> None:
        from moto.ssm.models import Parameter

        for name, image in self.parameters.items():
            backend._parameters[name] = [
                Parameter(  # type: ignore[abstract]
                    account_id=backend.account_id,
                    name=name,
                    value=image,
                    parameter_type="String",
                    description=None,
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=datetime(2026, 11, 1),  # noqa: DTZ001
                    version=1,
                    data_type="aws:ec2:image",
                )
            ]
