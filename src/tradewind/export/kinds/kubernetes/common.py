"""Names, places and the security that all pods of an export have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Refused
from tradewind.model import secrets
from tradewind.providers.kubernetes.flavours import FLAVOURS, RESOURCES
from tradewind.providers.kubernetes.offers.known import NVIDIA, ZONE

_MOST = 50
"""Of a name, so that what is made of it has no more than 63."""
USER = 10001
GIB = 1 << 30
CORES, MEMORY_GIB = 4, 24
"""For each accelerator."""


class Names(NamedTuple):
    name: str

    @classmethod
    def of(cls, asked: Asked) -> Names:
        plain = re.sub(r"[^a-z0-9]+", "-", asked.name).strip("-")[:_MOST].strip("-")
        return cls(plain if plain[:1].isalpha() else f"job-{plain}")

    @property
    def labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": self.name}

    def metadata(self, suffix: str = "") -> dict[str, Any]:
        return {"name": self.name + suffix, "labels": self.labels}


class Place(NamedTuple):
    resource: str
    affinity: dict[str, Any]
    tolerations: list[dict[str, str]]
    notes: list[str]


def place(asked: Asked, settings: Mapping[str, str], spot: bool, only_spot: bool) -> Place:
    """On which nodes pods may be, and what they ask for of one."""
    flavour, chip = FLAVOURS[settings["labels"]], asked.chip
    resource = settings["resource"] or RESOURCES.get(chip.vendor, "")
    if not resource:
        raise Refused(
            f"no resource of Kubernetes is known by which pods ask for {chip.name}",
            nearest="--set resource=NAME, as the cluster's device plugin calls it",
        )
    notes, terms = [], []
    values = flavour.names.get(chip.name)
    if values and not settings["resource"]:
        terms.append({"key": flavour.label, "operator": "In", "values": list(values)})
    elif not settings["resource"]:
        notes.append(
            f"what {settings['labels']} clusters call {chip.name} is not known: pods go to any"
            f" node with {resource}"
        )
    if settings["zone"]:
        terms.append({"key": ZONE, "operator": "In", "values": [settings["zone"]]})
    key, value = flavour.spot
    if only_spot:
        terms.append({"key": key, "operator": "In", "values": [value]})
    node: dict[str, Any] = {}
    if terms:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchExpressions": terms}]
        }
    if spot and not only_spot:
        prefers = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 100, "preference": prefers}
        ]
    tolerations = [{"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}]
    if resource.startswith("amd"):
        tolerations = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]
    for taint, what in flavour.taints:
        if spot or taint != flavour.spot[0]:
            tolerations.append(
                {"key": taint, "operator": "Equal", "value": what, "effect": "NoSchedule"}
            )
    return Place(resource, {"nodeAffinity": node} if node else {}, tolerations, notes)


def pod(
    where: Place, container: dict[str, Any], volumes: list[dict[str, Any]], grace: Why,
    restart: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The strictest level of pod security, and no rights in the cluster."""
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **({"restartPolicy": restart} if restart else {}),
        "terminationGracePeriodSeconds": grace,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"affinity": where.affinity} if where.affinity else {}),
        "tolerations": where.tolerations,
        "containers": [
            {
                **container,
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
        "volumes": [
            *volumes,
            {"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
        ],
    }


SHARED = {"name": "shared", "mountPath": "/dev/shm"}


def resources(where: Place, count: int) -> Why:
    amounts = {
        "cpu": str(CORES * count),
        "memory": f"{MEMORY_GIB * count}Gi",
        where.resource: str(count),
    }
    return Why(
        {"requests": amounts, "limits": amounts},
        f"{CORES} cores and {MEMORY_GIB} GiB for each accelerator: less than what such machines"
        " have for each.",
    )


def claim(names: Names, suffix: str, gib: int, mode: str, storage: str, why: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": names.metadata(suffix),
        "spec": claim_spec(gib, mode, storage, why),
    }


def claim_spec(gib: int, mode: str, storage: str, why: str) -> dict[str, Any]:
    return {
        "accessModes": [mode],
        **({"storageClassName": storage} if storage else {}),
        "resources": {"requests": {"storage": Why(f"{gib}Gi", why)}},
    }


def image(asked: Asked, settings: Mapping[str, str]) -> tuple[str, list[str]]:
    named = settings["image"] or (asked.job.image if asked.job is not None else "") or ""
    if named:
        return named, []
    stand_in = f"registry.example.com/{Names.of(asked).name}:1"
    return stand_in, [
        f"{stand_in} stands in for an image of yours: --set image=NAME, which"
        " `tradewind image push` prints"
    ]


def secret_variables(asked: Asked, names: Names) -> tuple[list[dict[str, Any]], list[str]]:
    """Only names of secrets, and their keys."""
    found, missing = [], []
    for variable, text in (asked.job.secrets if asked.job is not None else {}).items():
        said = secrets.parse(text)
        if said.scheme == secrets.KUBERNETES_SECRET:
            name, key = said.name, said.key
        else:
            name, key = f"{names.name}-secrets", variable
            missing.append(f"{variable} ({text})")
        found.append({"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}})
    notes = []
    if missing:
        notes.append(
            f"a Secret {names.name}-secrets with {', '.join(missing)} has to be there first"
        )
    return found, notes


def plain_variables(variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """`$(` is what Kubernetes would fill in."""
    return [
        {"name": name, "value": value.replace("$(", "$$(")} for name, value in variables.items()
    ]
