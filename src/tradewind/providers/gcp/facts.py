"""What holds of machines of Compute Engine, whoever rents them.

From cloud.google.com: by the second, at least a minute ("VM instance pricing"); from RUNNING on
("Compute Engine instance lifecycle"); spot machines are told 30 s before they are taken, best
effort ("Spot VMs"); a time limit of Google's own ends a machine up to 30 s late ("Limit the run
time of a VM"). That a new machine is listed within a minute is an assumption.

A machine that shuts itself down is paid no longer, but for its disk: whoever lists machines deletes
it (machines/listing.py). One that nobody looks after, and that hangs, is deleted by Google at its
time limit.
"""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.model.run import Facts

FACTS = Facts(
    boot_timeout_s=900,
    notice_s=30,
    billing_step_s=1,
    billing_least_s=60,
    billing_lead_s=120,
    tokens=True,
    listing_lag_s=60,
    ends="limit",
)
FLEX_START = "flex_start"
"""The market of the Dynamic Workload Scheduler: machines that are waited for, and then held for
seven days at most."""
FLEX_FACTS = replace(FACTS, queues=True)
FLEX_WAIT_S = 7200
"""For so long Google looks for a machine, before it gives up."""
FLEX_LONGEST_S = 7 * 86_400
LONGEST_S = 120 * 86_400
"""No time limit may be longer."""

IMAGES = {
    ("x86_64", True): "projects/ubuntu-os-accelerator-images/global/images/family/"
    "ubuntu-accelerator-2404-amd64-with-nvidia-580",
    ("x86_64", False): "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64",
    ("arm64", False): "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-arm64",
}
"""By architecture, and whether there are GPUs: Ubuntu 24.04, whose Python is 3.12; with GPUs
Canonical's, which has NVIDIA's driver in it."""
PASS_S = 3600
"""For so long machines are lent a pass to a store that is not Google's."""
TPU = "tpu-"
"""What the catalog's names of TPU slices begin with."""
TPU_FACTS = replace(FACTS, boot_timeout_s=1800, notice_s=0, ends="never")
"""Slices take minutes to come up. That a spot one is told before it is taken, Google does not
promise: where its metadata says so, that is used. Nothing ends its bill but deleting it: there is
no time limit, and machines may not delete slices, as who may delete one may delete all of the
project."""
QUEUED = "queued"
"""The market of queued resources: slices that are waited for, at the price of on-demand ones."""


def facts_of(market: str, instance_type: str = "") -> Facts:
    if instance_type.startswith(TPU):
        return replace(TPU_FACTS, queues=True) if market == QUEUED else TPU_FACTS
    return FLEX_FACTS if market == FLEX_START else FACTS
