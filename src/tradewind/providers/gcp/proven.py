"""Whether what the store says of a project is what setup makes, before it becomes parameters of a
launch. Pure: all names are made of the store's URL and the project, and are made again here.

What is left to be believed is the project itself. In another one there is no service account of
this store's, and without it nothing is launched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tradewind.base.errors import InvalidValue
from tradewind.providers import recorded
from tradewind.providers.gcp.footprint import Footprint, bucket_of, is_home, name, setup_command
from tradewind.providers.gcp.setup import roles
from tradewind.providers.gcp.setup.things import email

PUBLISHERS = (
    "cos-cloud", "debian-cloud", "deeplearning-platform-release", "ml-images",
    "rocky-linux-accelerator-cloud", "rocky-linux-cloud",
    "ubuntu-os-accelerator-images", "ubuntu-os-cloud",
)  # fmt: skip
"""Projects whose images are Google's, or of who makes the system."""
_PROJECT = re.compile(r"(?:[a-z0-9.-]{1,80}:)?[a-z][a-z0-9-]{0,61}[a-z0-9]")
_IMAGE = re.compile(r"projects/([a-z0-9.:-]+)/global/images/(?:family/)?[a-z0-9-]+")


def check(footprint: Footprint, store_url: str) -> None:
    for wrong in _wrong(footprint, store_url):
        raise recorded.differs("gcp", wrong, setup_command(store_url, *sorted(footprint.subnets)))


def _wrong(footprint: Footprint, store_url: str) -> Iterator[str]:
    project, called = footprint.project, name(store_url)
    if _PROJECT.fullmatch(project) is None:
        yield f"its project is {project!r}, which is none"
        return
    wanted = {
        "service_account": email(store_url, project),
        "network": called,
        "role": roles.base(store_url),
    }
    if is_home(store_url):
        wanted["bucket"] = bucket_of(store_url)[0]
    for what, right in wanted.items():
        if (said := getattr(footprint, what)) != right:
            yield f"its {what} is {said!r}, and {store_url} has {right}"
    for region, subnet in footprint.subnets.items():
        if subnet != called:
            yield f"its subnetwork in {region} is {subnet!r}, and {store_url} has {called}"
    for place, subnets in footprint.fast_subnets.items():
        for subnet in subnets:
            if not re.fullmatch(rf"{called}(-[a-z0-9-]+)?", subnet):
                yield f"a subnetwork in {place} is {subnet!r}, and not one of {called}-…"
    for region, zones in footprint.zones.items():
        for zone in zones:
            if not re.fullmatch(r"[a-z]+-[a-z]+[0-9]+-[a-z]", zone) or zone[:-2] != region:
                yield f"{zone!r} is no zone of {region!r}"
    try:
        check_image(footprint.image, project)
    except InvalidValue as error:
        yield error.message


def check_image(image: str, project: str) -> None:
    """Anyone can publish one. "": the usual ones."""
    found = _IMAGE.fullmatch(image)
    if image and found is None:
        raise InvalidValue(
            f"{image!r} names no image",
            hint="projects/PROJECT/global/images/family/FAMILY, or …/images/IMAGE",
        )
    if found is not None and found[1] not in (project, *PUBLISHERS):
        raise InvalidValue(
            f"the image {image} is neither of the project {project} nor of those who publish the"
            " usual ones",
            hint="copy it into this project: gcloud compute images create NAME --source-image IMAGE"
            f" --source-image-project {found[1]}",
        )
