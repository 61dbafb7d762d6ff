"""The variables of a job: a few of its machine's (environment.py), its workload's own, and those by
which it is told of its run."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from msgspec import json

import tradewind
from tradewind.model.boot import Boot
from tradewind.model.run import Spec, Way
from tradewind.store import meter
from tradewind.store.lending import held
from tradewind.supervisor import environment, given
from tradewind.supervisor.folder import MachineFolder


def of_job(
    boot: Boot, spec: Spec, way: Way | None, folder: MachineFolder, turn: int
) -> dict[str, str]:
    """`turn`: the number that its checkpoints have."""
    own = given.table(spec.job, "env")
    # `python` is the one that has Tradewind, as where the run was submitted.
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    inherited = environment.inherited(os.environ, (boot.store_url, spec.data))
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        inherited.pop(name, None)  # see caches
    return {
        **inherited,
        "PATH": os.pathsep.join(folders),
        "PYTHONUNBUFFERED": "1",
        **boot.variables,
        **own,
        **_ours(folder, own.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))),
        "TRADEWIND_RUN": boot.run_id,
        "TRADEWIND_LEG": str(turn),
        "TRADEWIND_RANK": str(boot.rank),
        "TRADEWIND_HOST": boot.host,
        "TRADEWIND_NODES": str(boot.nodes),
        "TRADEWIND_STORE": boot.store_url,
        "TRADEWIND_RESUME": "",
        "TRADEWIND_PROGRESS": str(folder.progress),
        "TRADEWIND_METRICS": str(folder.metrics),
        "TRADEWIND_SAVE": str(folder.save),
        "TRADEWIND_CADENCE": str(folder.cadence),
        "TRADEWIND_LAYOUT": _layout(way),
        "TRADEWIND_TELEMETRY": str(folder.telemetry),
        "TRADEWIND_SERVING": str(folder.serving),
        meter.VARIABLE: str(folder.used),
        **({held.VARIABLE: boot.pass_file} if boot.pass_file else {}),
    }


def caches(folder: MachineFolder) -> dict[str, str]:
    """Where a try compiles to, unless the workload says where."""
    compiled = folder.new_compiled()
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(compiled / "inductor"),
        "TRITON_CACHE_DIR": str(compiled / "triton"),
    }


def _ours(folder: MachineFolder, path: str) -> dict[str, str]:
    """So that whatever Python runs the job finds `tradewind`, where only a kit has brought it: a
    folder with that and nothing else comes behind the user's own, and what it needs (msgspec,
    obstore) behind all that the job has itself."""
    package = Path(tradewind.__file__).parent
    if not package.is_relative_to(folder.path / "kit"):
        return {}
    alone = folder.path / "for-job"
    alone.mkdir(exist_ok=True)
    with suppress(FileExistsError):
        (alone / "tradewind").symlink_to(package)
    folders = [path, str(alone)] if path else [str(alone)]
    return {"PYTHONPATH": os.pathsep.join(folders), "TRADEWIND_SITE": str(package.parent)}


def _layout(way: Way | None) -> str:
    """How the plan of what was bought spreads the work, as JSON; empty where it does not say. What
    stands there for the provider (a table under its name) is none of the job's."""
    told = {} if way is None else way.layout
    plain = {name: value for name, value in told.items() if not isinstance(value, dict)}
    return json.encode(plain).decode() if plain else ""
