"""A provider of clusters on the equipment (tests/cloud/faces/kubernetes), as several processes open
it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually
from tests.providers.kubernetes.builders import PLACE, a_cluster, a_request
from tradewind.model.run import Listing, Machine, Queued, Request
from tradewind.providers.boot.luggage import Luggage
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.client import Client
from tradewind.providers.kubernetes.footprint import Footprint, decoded
from tradewind.providers.kubernetes.provider import KubernetesProvider
from tradewind.providers.kubernetes.troubles import Missing

SMALL: dict[str, Any] = {"resources": {"cpu": "100m", "memory": "64Mi"}}
"""What a pod asks for where that does not matter."""
GPUS: dict[str, Any] = {"resources": {"nvidia.com/gpu": "8"}}
"""A whole node of the equipment's, which has two."""


def footprint(control: Control, namespace: str, **more: Any) -> Footprint:
    usual = a_cluster(
        context="test",
        server=control.url,
        namespace=namespace,
        service_account="default",
        nodes=True,
        grace_s=1,
    )
    return Footprint(clusters={PLACE: replace(usual, **more)})


def packed(request: Request, architecture: str) -> Luggage:
    tell = tuple(f"https://b/tell/{rank}" for rank in range(request.way.nodes))
    return Luggage(
        kit="https://b/kit", sha256="0" * 64, tell=tell, environment={"ARCH": architecture}
    )


def noted(control: Control, namespace: str, owner: str) -> None:
    """As setup does: this store's pods may run as it."""
    notes = {labels.used_by(labels.owner_of(owner)): "runs"}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    client = Client("test", server=control.url)
    client.patch(path, {"metadata": {"annotations": notes}}, Any, "noting")


def argument(kubeconfig: str, made: Footprint, owner: str) -> str:
    return json.dumps([kubeconfig, made.encoded().decode(), owner])


def opened(given: str) -> KubernetesProvider:
    kubeconfig, record, owner = json.loads(given)
    os.environ["KUBECONFIG"] = kubeconfig
    return KubernetesProvider(decoded(record.encode()), owner, packed)


class Rented:
    """A provider in a namespace of its own, and what a test asks of it."""

    def __init__(self, control: Control, namespace: str, **more: Any) -> None:
        self.control, self.namespace = control, namespace
        self.owner = f"s3://b/{namespace}"
        with suppress(Missing):  # where a test has no such namespace
            noted(control, namespace, self.owner)
        self.provider = self.again(**more)

    def again(self, **more: Any) -> KubernetesProvider:
        """Opened once more, perhaps for a cluster that is set up otherwise."""
        return KubernetesProvider(
            footprint(self.control, self.namespace, **more), self.owner, packed
        )

    def request(self, nodes: int = 1, leg: int = 1, **layout: Any) -> Request:
        return a_request(nodes, leg, layout={**SMALL, **layout})

    def launched(self, request: Request) -> list[Machine]:
        """And all has begun."""
        self.provider.launch(request, 1)
        return eventually(lambda: self.machines(request))

    def machines(self, request: Request) -> list[Machine]:
        found = self.provider.list_machines().machines
        return [each for each in found if each.launch_id == request.launch_id]

    def queued(self, request: Request) -> Queued | None:
        found = self.provider.list_machines().queued
        return next((each for each in found if each.launch_id == request.launch_id), None)

    def ended(self, request: Request, rank: int = 0) -> Machine:
        def look() -> Machine | None:
            found = [each for each in self.machines(request) if each.rank == rank]
            return found[0] if found and found[0].ended_s is not None else None

        return eventually(look)  # type: ignore[return-value]

    def pod(self, rank: int = 0) -> str:
        """Its name."""
        index = "batch.kubernetes.io/job-completion-index"
        pods = self.control.objects("pods", self.namespace)
        return next(
            str(each["metadata"]["name"])
            for each in pods
            if each["metadata"]["labels"][index] == str(rank)
        )

    def node_of(self, pod: str) -> str:
        pods = self.control.objects("pods", self.namespace)
        found = next(each for each in pods if each["metadata"]["name"] == pod)
        return str(found["spec"]["nodeName"])

    def left(self) -> list[str]:
        return self.control.left(self.namespace)


class Patient:
    """Launches, and waits until what was launched has begun: so a provider whose launches wait
    in a queue answers as one that has machines at once."""

    def __init__(self, provider: KubernetesProvider) -> None:
        self.provider = provider
        self.list_machines = provider.list_machines
        self.terminate = provider.terminate

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        def there() -> Sequence[Machine]:
            found = self.provider.launch(request, after, key)
            listing: Listing = self.provider.list_machines()
            waits = any(each.launch_id == request.launch_id for each in listing.queued)
            return () if waits else found

        return eventually(there)


def opened_patiently(given: str) -> Patient:
    return Patient(opened(given))
