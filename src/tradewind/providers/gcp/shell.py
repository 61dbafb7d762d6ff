"""A shell on a machine of Google's. Nothing listens to the world there: Identity-Aware Proxy leads
to it, for whoever IAM lets in."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence

from tradewind.base.errors import MissingExtra, NotFound
from tradewind.model.run import Machine
from tradewind.providers.gcp.labels import parted
from tradewind.providers.gcp.tpu import listing


def command(machine: Machine, project: str, key: str, words: Sequence[str]) -> list[str]:
    worker = listing.parted(machine.machine_id)
    parts = parted(machine.machine_id)
    if worker is not None:
        (zone, slice_name), _, rank = worker
        # Only there it leads through Identity-Aware Proxy.
        to = ["alpha", "compute", "tpus", "tpu-vm", "ssh", slice_name, "--worker", str(rank)]
    elif parts is not None:
        zone, to = parts[0], ["compute", "ssh", parts[1].text]
    else:
        raise NotFound(f"{machine.machine_id} is no machine of Google Cloud's")
    return [
        *("gcloud", *to, "--zone", zone),
        *(("--project", project) if project else ()),
        "--tunnel-through-iap",
        *(("--ssh-key-file", key) if key else ()),
        *(("--command", shlex.join(words)) if words else ()),
    ]


def check(command: Sequence[str]) -> None:
    if shutil.which("gcloud") is None:
        raise MissingExtra(
            "gcloud is not installed here",
            hint="cloud.google.com/sdk/docs/install; --print shows the command for elsewhere",
        )
