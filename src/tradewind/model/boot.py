"""What a machine is given at its launch: enough to find its run in the store. The rest, such as the
job and how often it may fail, is in the run's journal."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct, json


class Boot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    store_url: str
    run_id: str
    leg: int
    rank: int
    nodes: int
    machine_id: str
    launch_id: str
    hard_stop_s: int
    after: int
    """The commit that recorded the purchase: orders come after it."""
    relieves: int = 0
    """The leg that must be over before the job begins; 0: none."""
    waits: bool = False
    """The job begins only when the journal has found all machines of the leg: another leg may be at
    work until then, and what it saves comes before what this one does."""
    variables: dict[str, str] = {}
    """Of its job's environment: what the machine has learned of itself, and its job needs."""
    host: str = "127.0.0.1"
    """By what name the other machines of the leg reach this one."""
    public: str = ""
    """Its address in the world, where it has one, and has learned it."""
    notice: str = ""
    """Where the provider tells that it will take the machine: a file for local ones, else the name
    of the provider whose metadata service is to be asked."""
    secrets: str = ""
    """A file that only its user may read, with values of the job's secrets that were handed over on
    this computer; "": none can be."""
    python: str = ""
    """The interpreter that has Tradewind, where it is known; else the kit is installed."""
    key: str = ""
    """What it signs with, so that no other machine speaks for it, or brings files for its run
    (tradewind/base/signing.py)."""
    job_sha256: str = ""
    """Of the job that may run here; empty: whatever its journal says."""
    kit: str = ""
    """A path or URL of the kit of wheels."""
    pass_file: str = ""
    """Where its pass to the store lies, readable by its user alone; "": it is somebody to the store
    without one."""
    up_since_s: float | None = None
    """When the machine came up, by its own monotonic clock: 0 where that begins with the machine,
    as on a virtual one. None, as in a container: when the supervisor was started first."""


def sha256_of(job: dict[str, Any]) -> str:
    """Of what a job runs: its command, its setup, its bundle's hash and the rest."""
    return hashlib.sha256(json.encode(job, order="deterministic")).hexdigest()
