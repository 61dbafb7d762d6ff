"""A shell in a pod: by `kubectl exec`, as whoever uses this computer. No port is open for it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from tradewind.base.errors import InvalidValue, MissingExtra, NotFound
from tradewind.model.run import Machine
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.client import Client, paths, selector
from tradewind.providers.kubernetes.footprint import Footprint
from tradewind.providers.kubernetes.manifests import leg

_SHELL = ("sh", "-c", "exec $(command -v bash || echo sh)")


def command(footprint: Footprint, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
    if key:
        raise InvalidValue("--key is for ssh, and pods are entered by kubectl exec")
    parted = labels.parted(machine.machine_id, footprint.clusters)
    if parted is None:
        raise NotFound(
            f"{machine.machine_id} is in no cluster that is set up for this store",
            hint=f"set up: {', '.join(footprint.clusters) or 'none'}",
        )
    name, job, rank = parted
    cluster = footprint.clusters[name]
    client = Client(cluster.context, server=cluster.server)
    found = client.all(
        paths(cluster.namespace)["pods"],
        dict[str, Any],
        f"looking for the pod of rank {rank}",
        labels=selector({labels.INDEX: str(rank)}, leg.pods_of(job)),
        fields="status.phase=Running",
    )
    if not found:
        raise NotFound(
            f"no pod of {job} with rank {rank} is running in {name}",
            hint="tradewind show RUN says what it waits for",
        )
    pod = found[0]["metadata"]["name"]
    entered = ["kubectl"]
    if cluster.context:
        entered += ["--context", cluster.context]
    # A terminal only for a shell: the output of a command may go into a file.
    entered += ["--namespace", cluster.namespace, "exec", *(("-it",) if not words else ()), pod]
    return [*entered, "--", *(words or _SHELL)]


def check(command: Sequence[str]) -> None:
    if shutil.which(command[0]) is None:
        raise MissingExtra(
            "kubectl is not installed here",
            hint="kubernetes.io/docs/tasks/tools; --print shows the command for another computer",
        )
