"""How many GPUs a project may have on demand of those whose quotas regions do not tell: H100 and
newer. Cloud Quotas has them, all in one quota, by the family of the GPU and the region.

It is an API of its own, which many projects have off, and a permission of its own. Where it cannot
be asked, nothing is known, and nothing is held against it. It tells what a project may have, not
what it uses.
"""

from __future__ import annotations

from msgspec import Struct

from tradewind.providers import remembered
from tradewind.providers.base import Refused
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.limits.quotas import FRESH_S, Quota

QUOTA = "GPUS-PER-GPU-FAMILY-per-project-region"
SERVICE = "cloudquotas.googleapis.com"
FAMILIES = {
    "nvidia-h100-80gb": "NVIDIA_H100",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA",
    "nvidia-h200-141gb": "NVIDIA_H200",
    "nvidia-b200": "NVIDIA_B200",
    "nvidia-rtx-pro-6000": "NVIDIA_RTX_PRO_6000",
}
"""By accelerator. Families that are called otherwise there are not told, and so not held against
anything."""
TYPES = ("a3-", "a4-", "g4-")
"""What machine types with such GPUs begin with."""
_ANYWHERE = "global"


class _Details(Struct, frozen=True):
    value: str = ""


class _Info(Struct, frozen=True, rename="camel"):
    """For some values of the dimensions; those that it does not name are all others'."""

    dimensions: dict[str, str] | None = None
    details: _Details = _Details()
    applicable_locations: tuple[str, ...] = ()

    def fits(self, region: str, family: str) -> bool:
        here = {"region": region, "gpu_family": family}
        named = self.dimensions or {}
        places = self.applicable_locations
        return all(here.get(key) == value for key, value in named.items()) and (
            not places or region in places or _ANYWHERE in places
        )


class _Told(Struct, frozen=True, rename="camel"):
    dimensions_infos: tuple[_Info, ...] = ()


class Families(Struct, frozen=True, kw_only=True):
    infos: tuple[_Info, ...] = ()
    untold: str = ""
    """Why nothing is known; "": it is."""

    def quota(self, region: str, gpu: str) -> Quota | None:
        """Of an accelerator on demand; None: it is not known, or there is no limit."""
        family = FAMILIES.get(gpu)
        if family is None:
            return None
        fitting = [each for each in self.infos if each.fits(region, family)]
        if not any("gpu_family" in (each.dimensions or {}) for each in fitting):
            return None  # a number for all families together would say little of this one
        best = max(fitting, key=lambda each: len(each.dimensions or {}))
        try:
            limit = int(best.details.value or 0)
        except ValueError:
            return None
        if limit < 0:  # as Google says that there is none
            return None
        return Quota(region=region, metric=QUOTA, family=family, limit=limit, used=0)


def families(google: Google, project: str) -> Families:
    """Whoever may not ask, or has the API off, is told nothing."""
    path = f"/v1/projects/{project}/locations/global/services/compute.googleapis.com/quotaInfos"

    def ask() -> Families:
        doing = f"asking for the quotas of {project} by GPU family"
        try:
            told = google.rest("cloudquotas").get(f"{path}/{QUOTA}", _Told, doing)
        except Refused as error:
            if error.kind not in ("not_allowed", "not_found"):
                raise
            return Families(untold=error.message)
        return Families(infos=told.dimensions_infos)

    return remembered.one(google, ("families", project), ask, FRESH_S)
