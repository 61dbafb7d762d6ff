"""What Compute Engine keeps besides instances: networks, subnetworks, firewalls, routers, resource
policies, reservations, images; and what a project finds there: zones, types, quotas.

Made, changed and removed by operations; something that others refer to cannot be removed. Known
lies: firewalls guard nothing; a network's automatic subnetworks exist for `default` alone; routes
are not there; a changed thing is merged with what was sent, arrays replaced; compact placement
places nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.cloud.faces.google import fabric, listing, orders, places
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.problems import Problem, exists, unknown
from tests.cloud.faces.google.state import LINK, PROJECT, State, stamp

KEPT = {
    "networks": "network",
    "subnetworks": "subnetwork",
    "firewalls": "firewall",
    "routers": "router",
    "routes": "route",
    "resourcePolicies": "resourcePolicy",
    "reservations": "reservation",
    "addresses": "address",
    "disks": "disk",
}
_REFERS = {
    "networks": (("subnetworks", "network"), ("firewalls", "network"), ("routers", "network")),
}
_IMAGES = {
    "debian-cloud": {"debian-12": 10, "debian-13": 10},
    "ubuntu-os-cloud": {
        "ubuntu-2204-lts": 10,
        "ubuntu-2404-lts-amd64": 10,
        "ubuntu-2404-lts-arm64": 10,
    },
    "ubuntu-os-accelerator-images": {"ubuntu-accelerator-2404-amd64-with-nvidia-580": 20},
    "deeplearning-platform-release": {
        "common-cu128-ubuntu-2204-nvidia-570": 50,
        "common-cu129-ubuntu-2204-nvidia-580": 50,
        "common-cu128-ubuntu-2404-nvidia-570": 50,
        "common-cu129-ubuntu-2404-nvidia-580": 50,
        "pytorch-2-7-cu128-ubuntu-2204-nvidia-570": 50,
        "pytorch-2-7-cu128-ubuntu-2404-nvidia-570": 50,
    },
}


class Shelves:
    def __init__(self, state: State) -> None:
        self._state = state
        self.things: dict[str, dict[str, Any]] = {}
        """By path: projects/P/global/networks/N."""
        self.used_by: Callable[[str], list[str]] = lambda path: []
        """Instances that refer to a path."""
        self.usage: Callable[[str, str], float] = lambda region, code: 0.0
        for project, families in _IMAGES.items():
            for family, gb in families.items():
                self.put_image(project, family, f"{family}-v20261101", gb)
        self._defaults(PROJECT)

    def _defaults(self, project: str) -> None:
        path = f"projects/{project}/global/networks/default"
        network = {"name": "default", "autoCreateSubnetworks": True}
        self.put(path, {**network, "routingConfig": {"routingMode": "REGIONAL"}})
        for number, region in enumerate(places.ZONES):
            told = {"name": "default", "network": LINK + path, "privateIpGoogleAccess": False}
            told["ipCidrRange"] = f"10.{128 + number * 2}.0.0/20"
            self.put(f"projects/{project}/regions/{region}/subnetworks/default", told)

    def does(self) -> dict[str, Callable[[GoogleCall], Any]]:
        found: dict[str, Callable[[GoogleCall], Any]] = {
            "compute.projects.get": self.project,
            "compute.subnetworks.setPrivateIpGoogleAccess": self.patch,
            "compute.regions.get": lambda call: self.region(call, call.params["region"]),
            "compute.regions.list": self.regions,
            "compute.zones.get": lambda call: self.zone(call, call.params["zone"]),
            "compute.zones.list": self.zones,
            "compute.machineTypes.get": self.machine_type,
            "compute.machineTypes.list": self.machine_types,
            "compute.machineTypes.aggregatedList": self.all_machine_types,
            "compute.acceleratorTypes.get": self.accelerator,
            "compute.acceleratorTypes.list": self.accelerators,
            "compute.acceleratorTypes.aggregatedList": self.all_accelerators,
            "compute.images.get": self.get_image,
            "compute.images.getFromFamily": self.family,
            "compute.images.list": self.images,
            "compute.networkProfiles.get": fabric.get,
            "compute.networkProfiles.list": fabric.list_,
        }
        for each in KEPT:
            found[f"compute.{each}.insert"] = self.insert
            found[f"compute.{each}.get"] = self.get
            found[f"compute.{each}.list"] = self.list_
            found[f"compute.{each}.delete"] = self.delete
            found[f"compute.{each}.patch"] = self.patch
            found[f"compute.{each}.aggregatedList"] = self.aggregated
        found["compute.networks.listPeeringRoutes"] = lambda call: {"items": []}
        return found

    # -- things ------------------------------------------------------------------------------------

    def put(self, path: str, told: dict[str, Any]) -> dict[str, Any]:
        collection = path.split("/")[-2]
        scope = path.split("/")[-3]
        place = {"region": f"{LINK}{'/'.join(path.split('/')[:4])}"} if "/regions/" in path else {}
        made: dict[str, Any] = {
            "kind": f"compute#{KEPT.get(collection, collection)}",
            "id": self._state.number(),
            "creationTimestamp": stamp(self._state.world.now()),
            **told,
            **place,
            "selfLink": LINK + path,
            "fingerprint": f"f{len(self.things)}=",
        }
        if collection == "resourcePolicies":
            made["status"] = "READY"
        assert scope
        self.things[path] = made
        return made

    def need(self, link: str, collection: str, project: str, region: str) -> dict[str, Any]:
        """What a link of any length refers to."""
        path = link.partition("/compute/v1/")[2] or link
        if path.startswith("projects/"):
            pass
        elif path.startswith(("global/", "regions/")):
            path = f"projects/{project}/{path}"
        else:
            scope = f"regions/{region}" if region else "global"
            path = f"projects/{project}/{scope}/{collection}/{path.rpartition('/')[2]}"
        found = self.things.get(path)
        if found is None:
            raise Problem(404, f"The resource '{path}' was not found")
        if region and f"/regions/{region}/" not in path:
            raise orders.bad(
                f"resource.{collection}", link, "Cross region reference is not allowed."
            )
        return found

    def reservation(self, value: str, project: str) -> None:
        name = value.rpartition("/")[2]
        paths = [p for p in self.things if p.endswith(f"/reservations/{name}")]
        if not paths:
            raise Problem(
                404, f"The resource 'projects/{project}/reservations/{name}' was not found"
            )

    def _path(self, call: GoogleCall, name: str = "") -> str:
        assert call.method is not None
        path = call.method.path.removeprefix("/compute/v1/")
        path = path.removesuffix("/setPrivateIpGoogleAccess")
        path = re.sub(r"\{(\w+)\}", lambda found: call.params[found[1]], path)
        path = re.sub(r"^projects/[^/]+", f"projects/{call.project}", path)
        return f"{path}/{name}" if name else path

    def _place(self, call: GoogleCall) -> str:
        if "region" in call.params:
            region = call.params["region"]
            if region not in places.ZONES:
                raise Problem(400, f"Invalid value for field 'region': '{region}'. Unknown region.")
            return f"regions/{region}"
        return f"zones/{call.params['zone']}" if "zone" in call.params else "global"

    def insert(self, call: GoogleCall) -> dict[str, Any]:
        place = self._place(call)
        name = call.json.get("name", "")
        orders.name(name)
        path = self._path(call, name)
        if path in self.things:
            raise exists(path)
        told = dict(call.json)
        for field in ("network", "subnetwork"):
            if field in told:
                region = call.params.get("region", "") if field == "subnetwork" else ""
                told[field] = self.need(told[field], f"{field}s", call.project, region)["selfLink"]
        self._fits(call, path, told)
        made = self.put(path, told)
        target = path.partition(f"{call.project}/")[2]
        return self._state.later(call.project, place, "insert", target, made["id"], call.who)

    def network(self, link: str) -> dict[str, Any]:
        return self.need(link, "networks", PROJECT, "")

    def _fits(self, call: GoogleCall, path: str, told: dict[str, Any]) -> None:
        collection = path.split("/")[-2]
        fabric.check_new(collection, told, call.params.get("region", ""), self.network)
        if collection == "subnetworks":
            others = [
                each for at, each in self.things.items()
                if at.split("/")[-2] == collection and each["network"] == told["network"]
            ]  # fmt: skip
            fabric.check_overlap(told, others)

    def get(self, call: GoogleCall) -> dict[str, Any]:
        path = self._path(call)
        if path not in self.things:
            raise unknown(path)
        return self.things[path]

    def list_(self, call: GoogleCall) -> dict[str, Any]:
        self._place(call)
        base = self._path(call) + "/"
        there = [told for path, told in self.things.items() if path.startswith(base)]
        return listing.page(listing.kept(there, call.params.get("filter", "")), call.params)

    def aggregated(self, call: GoogleCall) -> dict[str, Any]:
        collection = call.action.split(".")[1]
        there = []
        for path, told in self.things.items():
            parts = path.split("/")
            if parts[1] == call.project and parts[-2] == collection:
                there.append(("/".join(parts[2:-2]), told))
        every = [f"regions/{each}" for each in places.ZONES]
        return listing.aggregated(there, collection, every, call.params)

    def patch(self, call: GoogleCall) -> dict[str, Any]:
        told = self.get(call)
        told |= call.json
        path = self._path(call)
        target = path.partition(f"{call.project}/")[2]
        place = self._place(call)
        return self._state.later(call.project, place, "patch", target, told["id"], call.who)

    def delete(self, call: GoogleCall) -> dict[str, Any]:
        path, told = self._path(call), self.get(call)
        collection = path.split("/")[-2]
        users = self.used_by(path)
        for other, field in _REFERS.get(collection, ()):
            users += [
                p
                for p, each in self.things.items()
                if p.split("/")[-2] == other and str(each.get(field, "")).endswith(path)
            ]
        if users:
            raise Problem(
                400,
                f"The {KEPT[collection]} resource '{path}' is already being used by '{users[0]}'",
                "resourceInUseByAnotherResource",
            )
        del self.things[path]
        target = path.partition(f"{call.project}/")[2]
        place = self._place(call)
        return self._state.later(call.project, place, "delete", target, told["id"], call.who)

    # -- images ------------------------------------------------------------------------------------

    def put_image(self, project: str, family: str, name: str, gb: int) -> None:
        path = f"projects/{project}/global/images/{name}"
        told = {"name": name, "family": family, "diskSizeGb": str(gb), "status": "READY"}
        self.put(path, {**told, "architecture": "X86_64"})

    def image(self, link: str) -> dict[str, Any]:
        path = link.partition("/compute/v1/")[2] or link
        if path in self.things:
            return self.things[path]
        found = re.fullmatch(r"projects/([^/]+)/global/images/family/([^/]+)", path)
        newest = None
        for each, told in self.things.items():
            here = found and each.startswith(f"projects/{found[1]}/global/images/")
            if found and here and told.get("family") == found[2]:
                newest = told
        if newest is None:
            raise Problem(404, f"The resource '{path}' was not found")
        return newest

    def get_image(self, call: GoogleCall) -> dict[str, Any]:
        return self.image(f"projects/{call.params['project']}/global/images/{call.params['image']}")

    def family(self, call: GoogleCall) -> dict[str, Any]:
        path = f"projects/{call.params['project']}/global/images/family/{call.params['family']}"
        return self.image(path)

    def images(self, call: GoogleCall) -> dict[str, Any]:
        base = f"projects/{call.params['project']}/global/images/"
        there = [told for path, told in self.things.items() if path.startswith(base)]
        return listing.page(listing.kept(there, call.params.get("filter", "")), call.params)

    # -- what a project finds ----------------------------------------------------------------------

    def project(self, call: GoogleCall) -> dict[str, Any]:
        project = self._state.found(call.params["project"])
        quotas = [self._quota("", each) for each in places.GLOBAL]
        return {
            "kind": "compute#project",
            "id": project.number,
            "name": project.id,
            "quotas": quotas,
            "defaultServiceAccount": f"{project.number}-compute@developer.gserviceaccount.com",
            "selfLink": f"{LINK}projects/{project.id}",
            "defaultNetworkTier": "PREMIUM",
        }

    def _quota(self, region: str, code: str) -> dict[str, Any]:
        limit = self._state.world.quotas.value(region, code)
        return {"metric": code, "limit": limit, "usage": self.usage(region, code)}

    def region(self, call: GoogleCall, region: str) -> dict[str, Any]:
        if region not in places.ZONES:
            raise unknown(f"projects/{call.project}/regions/{region}")
        base = f"{LINK}projects/{call.project}"
        quotas = [self._quota(region, each) for each in places.QUOTAS if places.listed(each)]
        return {
            "kind": "compute#region",
            "name": region,
            "status": "UP",
            "zones": [f"{base}/zones/{each}" for each in places.zones(region)],
            "quotas": quotas,
            "selfLink": f"{base}/regions/{region}",
        }

    def regions(self, call: GoogleCall) -> dict[str, Any]:
        there = [self.region(call, each) for each in places.ZONES]
        return listing.page(listing.kept(there, call.params.get("filter", "")), call.params)

    def zone(self, call: GoogleCall, zone: str) -> dict[str, Any]:
        if not places.is_zone(zone):
            raise unknown(f"projects/{call.project}/zones/{zone}")
        base = f"{LINK}projects/{call.project}"
        return {
            "kind": "compute#zone",
            "name": zone,
            "status": "UP",
            "region": f"{base}/regions/{places.region_of(zone)}",
            "selfLink": f"{base}/zones/{zone}",
        }

    def zones(self, call: GoogleCall) -> dict[str, Any]:
        every = [each for region in places.ZONES for each in places.zones(region)]
        there = [self.zone(call, each) for each in every]
        return listing.page(listing.kept(there, call.params.get("filter", "")), call.params)

    def _has(self, zone: str, kind: str) -> bool:
        known = self._state.not_offered
        return not {(zone, kind), ("*", kind), (places.region_of(zone), kind)} & known

    def _machine_types(self, project: str, zone: str) -> list[dict[str, Any]]:
        found = []
        for each in places.KINDS.values():
            if not self._has(zone, each.name):
                continue
            told: dict[str, Any] = {
                "kind": "compute#machineType",
                "name": each.name,
                "guestCpus": each.cpus,
                "memoryMb": each.memory_mb,
                "zone": zone,
                "selfLink": f"{LINK}projects/{project}/zones/{zone}/machineTypes/{each.name}",
            }
            if each.gpus:
                told["accelerators"] = [
                    {"guestAcceleratorType": each.gpu, "guestAcceleratorCount": each.gpus}
                ]
            found.append(told)
        return found

    def machine_type(self, call: GoogleCall) -> dict[str, Any]:
        zone, name = call.params["zone"], call.params["machineType"]
        self.zone(call, zone)
        for each in self._machine_types(call.project, zone):
            if each["name"] == name:
                return each
        raise unknown(f"projects/{call.project}/zones/{zone}/machineTypes/{name}")

    def machine_types(self, call: GoogleCall) -> dict[str, Any]:
        self.zone(call, call.params["zone"])
        there = self._machine_types(call.project, call.params["zone"])
        return listing.page(listing.kept(there, call.params.get("filter", "")), call.params)

    def all_machine_types(self, call: GoogleCall) -> dict[str, Any]:
        every = [each for region in places.ZONES for each in places.zones(region)]
        there = [
            (f"zones/{zone}", told)
            for zone in every
            for told in self._machine_types(call.project, zone)
        ]
        places_ = [f"zones/{each}" for each in every]
        return listing.aggregated(there, "machineTypes", places_, call.params)

    def _accelerators(self, project: str, zone: str) -> list[dict[str, Any]]:
        return [
            {
                "kind": "compute#acceleratorType",
                "name": name,
                "description": f"NVIDIA {told.short}",
                "maximumCardsPerInstance": told.most,
                "zone": zone,
                "selfLink": f"{LINK}projects/{project}/zones/{zone}/acceleratorTypes/{name}",
            }
            for name, told in places.GPUS.items()
            if self._has(zone, name)
        ]

    def accelerator(self, call: GoogleCall) -> dict[str, Any]:
        zone, name = call.params["zone"], call.params["acceleratorType"]
        self.zone(call, zone)
        for each in self._accelerators(call.project, zone):
            if each["name"] == name:
                return each
        raise unknown(f"projects/{call.project}/zones/{zone}/acceleratorTypes/{name}")

    def accelerators(self, call: GoogleCall) -> dict[str, Any]:
        self.zone(call, call.params["zone"])
        there = self._accelerators(call.project, call.params["zone"])
        return listing.page(listing.kept(there, call.params.get("filter", "")), call.params)

    def all_accelerators(self, call: GoogleCall) -> dict[str, Any]:
        every = [each for region in places.ZONES for each in places.zones(region)]
        there = [
            (f"zones/{zone}", told)
            for zone in every
            for told in self._accelerators(call.project, zone)
        ]
        places_ = [f"zones/{each}" for each in every]
        return listing.aggregated(there, "acceleratorTypes", places_, call.params)
