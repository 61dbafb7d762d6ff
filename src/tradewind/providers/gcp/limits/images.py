"""What a machine starts from, and whether that can drive the type's GPUs.

The usual images have NVIDIA's driver of the 580 branch with its open kernel modules, which begin
with Turing (T4): older GPUs, and parts of a GPU, which need another driver, are left out unless an
image is named. Of a named image its name may tell: the projects of plain systems have no driver,
and `…-nvidia-550` is older than what Blackwell needs.
"""

from __future__ import annotations

import re

from tradewind.model.driven import is_old
from tradewind.providers.base import Refused
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.facts import IMAGES
from tradewind.providers.gcp.limits.zones import Offered
from tradewind.providers.gcp.machines.types import Kind

OWN_IMAGE = (
    "tradewind setup gcp --image projects/PROJECT/global/images/family/FAMILY names one that can"
)
_PARTS = ("g4-standard-6", "g4-standard-12", "g4-standard-24")
_PLAIN = (
    "centos-cloud",
    "cos-cloud",
    "debian-cloud",
    "rocky-linux-cloud",
    "ubuntu-os-cloud",
)
"""Projects of images without NVIDIA's driver."""
_LEAST = {
    "nvidia-h100-80gb": 525,
    "nvidia-h100-mega-80gb": 525,
    "nvidia-h200-141gb": 550,
    "nvidia-b200": 570,
    "nvidia-gb200": 570,
    "nvidia-rtx-pro-6000": 575,
    "nvidia-l4": 525,
}
"""The first branch of the driver that knows a GPU, by NVIDIA's release notes."""
_DRIVER = re.compile(r"nvidia-(\d{3})")


def undriven(kind: Kind, offered: Offered | None, image: str) -> str:
    """Why nothing would compute, "" where something will or nobody knows. `image`: one that is
    taken instead of the usual ones."""
    gpu = kind.accelerator or (offered.gpu if offered else "")
    if not kind.gpus:
        return ""
    if image:
        return _undriven_by(image, gpu)
    if (kind.architecture, True) not in IMAGES:
        return f"there is no usual image for {kind.machine_type} ({kind.architecture} with GPUs)"
    if is_old(gpu):
        return f"the usual image's driver begins with Turing, and {gpu} is older"
    if kind.machine_type in _PARTS:
        return f"{kind.machine_type} has a part of a GPU, which needs another driver"
    return ""


def _undriven_by(image: str, gpu: str) -> str:
    name, plain = image.rpartition("/")[2], without_driver(image)
    if plain:
        return plain
    driver = _DRIVER.search(name)
    if driver and int(driver[1]) < _LEAST.get(gpu, 0):
        return f"the image {name} has driver {driver[1]}, and {gpu} needs {_LEAST[gpu]}"
    return ""


def without_driver(image: str) -> str:
    """In words; "": it has one, or nobody knows."""
    project, name = image.split("/")[1], image.rpartition("/")[2]
    return f"the image {name} of {project} has no NVIDIA driver" if project in _PLAIN else ""


def exists(google: Google, image: str) -> bool:
    """Asked as machines will be: of the image's own project."""
    try:
        google.rest("compute").get(f"/{image}", dict, f"looking for the image {image}")
    except Refused as error:
        if error.kind != "not_found":
            raise
        return False
    return True
