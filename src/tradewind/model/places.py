"""Where everything of a run lies in its store: the one list of keys.

live/<run-id>                                    there while the run is looked at
runs/<run-id>/journal/<20 digits>.json           commits
runs/<run-id>/volumes/<20 digits>.jsonl          commits, bound by the thousand
runs/<run-id>/job/bundle.tar.gz                  the user's folder, as it was when submitted
runs/<run-id>/machines/<machine>/heartbeat.json  what a machine does now
runs/<run-id>/legs/<leg>/resume                  the checkpoint that the leg started from
runs/<run-id>/legs/<leg>/address                 host:port of rank 0, for the others to meet
runs/<run-id>/legs/<leg>/first/<rank>.log        why a machine could not even begin
runs/<run-id>/checkpoints/<leg>/<step>.json      a checkpoint that is complete
runs/<run-id>/shards/<leg>/<step>-<life>/…       its parts; what has no manifest is none
runs/<run-id>/logs/<leg>/<rank>/<offset>.log     the job's output, in pieces, by byte
runs/<run-id>/metrics/<leg>/<rank>/<offset>.log  what it has measured, in the same way
runs/<run-id>/outputs/lists/<rank>/<leg>.json    which output files of its job a machine has brought
runs/<run-id>/outputs/files/<rank>/<name>        one of them, written once
runs/<run-id>/rehearsal.json                     how machines of a local run are interrupted
live/@<service-id>                               there while the service is looked at
services/<service-id>/journal/<20 digits>.json   commits of a service; its replicas are runs
services/<service-id>/job/bundle.tar.gz          the folder of its engine
runs/@<service-id>/job/bundle.tar.gz             the same of one on rented machines
services/<service-id>/load/<hour>.json           what its front saw, by periods of ten seconds
runs/<run-id>/front/order.json                   what a rented front is told to do
read/<run-id>                                    written by whoever fetches what the run has left
passes/<run-id>/<launch>/first                   what machines without an identity begin with
passes/<run-id>/<launch>/<rank>                  what such a machine is lent after that
kits/<sha256>/kit.tar                            wheels for machines that have only Python
"""

from __future__ import annotations

import re

LIVE = "live/"
RUNS = "runs/"
SERVICES = "services/"
_SERVICE = "@"
"""No run's id begins so: whoever knows of runs only passes it over."""
WRITTEN_BY_MACHINES = ("machines", "logs", "metrics", "legs", "checkpoints", "shards", "outputs")
"""Folders of a run."""
DELETED_BY_MACHINES = ("checkpoints", "shards", "outputs")
"""Pruning: all that a training removes, and outputs that its job has replaced."""
_RUN_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?")


def is_run_id(name: str) -> bool:
    """Whether a run can have this id. Machines may write below any folder of `runs/`, so a folder
    there is not yet a run's."""
    return _RUN_ID.fullmatch(name) is not None


def live(run_id: str, life: int = 1) -> str:
    """A resumed run has another mark than before, so that whoever is about to remove the old one
    does not remove this."""
    return f"{LIVE}{run_id}" if life == 1 else f"{LIVE}{run_id}~{life}"


def marked(key: str) -> tuple[str, int]:
    """Whose mark it is, and of which of its lives."""
    name, _, life = key.removeprefix(LIVE).partition("~")
    return name, int(life) if life.isdecimal() else 1


def live_service(service_id: str) -> str:
    return f"{LIVE}{_SERVICE}{service_id}"


def marked_service(key: str) -> str | None:
    """Whose mark it is, where it is a service's."""
    name = key.removeprefix(LIVE)
    found = name.removeprefix(_SERVICE)
    return found if found != name and is_run_id(found) else None


def read(run_id: str) -> str:
    """Not below `runs/`: a mark of its readers', which is nothing of the run's own."""
    return f"read/{run_id}"


def swept(run_id: str) -> str:
    """A mark that what the run could go on from has been removed."""
    return f"swept/{run_id}"


def service_bundle(service_id: str) -> str:
    return f"services/{service_id}/job/bundle.tar.gz"


def rented_bundle(service_id: str) -> str:
    """Of a service on rented machines, which may read below `runs/` and nowhere else. The folder is
    no run's, and nobody takes it for one that was never submitted."""
    return f"{RUNS}{_SERVICE}{service_id}/job/bundle.tar.gz"


def is_of_service(folder: str) -> bool:
    """Among the runs."""
    return folder.startswith(_SERVICE) and is_run_id(folder.removeprefix(_SERVICE))


def loads(service_id: str) -> str:
    return f"services/{service_id}/load/"


def load(service_id: str, hour: int) -> str:
    """`hour`: since 1970."""
    return f"{loads(service_id)}{hour:012d}.json"


def run(run_id: str) -> str:
    return f"runs/{run_id}/"


def bundle(run_id: str) -> str:
    return f"runs/{run_id}/job/bundle.tar.gz"


def heartbeat(run_id: str, machine_id: str) -> str:
    return f"runs/{run_id}/machines/{machine_id}/heartbeat.json"


def front_order(run_id: str) -> str:
    """Machines read it, and cannot write there."""
    return f"runs/{run_id}/front/order.json"


def resume(run_id: str, leg: int) -> str:
    return f"runs/{run_id}/legs/{leg:06d}/resume"


def address(run_id: str, leg: int) -> str:
    return f"runs/{run_id}/legs/{leg:06d}/address"


def footprint(cloud: str) -> str:
    """What is set up at a cloud for the store."""
    return f"providers/{cloud}.json"


def first_log(run_id: str, leg: int, rank: int) -> str:
    return f"{first_logs(run_id, leg)}{rank:06d}.log"


def first_logs(run_id: str, leg: int) -> str:
    return f"runs/{run_id}/legs/{leg:06d}/first/"


def checkpoints(run_id: str) -> str:
    return f"runs/{run_id}/checkpoints/"


def checkpoint(run_id: str, leg: int, step: int) -> str:
    return f"runs/{run_id}/checkpoints/{leg:06d}/{step:020d}.json"


def shards(run_id: str) -> str:
    """Not below `checkpoints`, where every key is a checkpoint that is complete."""
    return f"runs/{run_id}/shards/"


def logs(run_id: str, leg: int | None = None, rank: int | None = None) -> str:
    """The folder of a run's, a leg's or one machine's output."""
    return _pieces("logs", run_id, leg, rank)


def metrics(run_id: str, leg: int | None = None, rank: int | None = None) -> str:
    """The same of what its job has measured."""
    return _pieces("metrics", run_id, leg, rank)


def log_piece(run_id: str, leg: int, rank: int, offset: int) -> str:
    return piece(logs(run_id, leg, rank), offset)


def piece(folder: str, offset: int) -> str:
    return f"{folder}{offset:020d}.log"


def outputs(run_id: str, rank: int, leg: int) -> str:
    """The list of what a machine has brought of its job's output files."""
    return f"{outputs_of_rank(run_id, rank)}{leg:06d}.json"


def outputs_of_rank(run_id: str, rank: int) -> str:
    return f"{output_lists(run_id)}{rank:04d}/"


def output_lists(run_id: str) -> str:
    return f"runs/{run_id}/outputs/lists/"


def batch(run_id: str) -> str:
    """The folder of a batch's outputs (`tradewind.batch`)."""
    return f"runs/{run_id}/batch/"


def output_files(run_id: str, rank: int) -> str:
    return f"runs/{run_id}/outputs/files/{rank:04d}/"


def rehearsal(run_id: str) -> str:
    return f"runs/{run_id}/rehearsal.json"


def passes(run_id: str) -> str:
    """Not below `runs/`, which machines of other runs may read."""
    return f"passes/{run_id}/"


def first_pass(run_id: str, launch_id: str) -> str:
    return f"{passes(run_id)}{launch_id}/first"


def a_pass(run_id: str, launch_id: str, rank: int) -> str:
    return f"{passes(run_id)}{launch_id}/{rank:06d}"


def _pieces(what: str, run_id: str, leg: int | None, rank: int | None) -> str:
    folder = f"runs/{run_id}/{what}/"
    if leg is not None:
        folder += f"{leg:06d}/"
        if rank is not None:
            folder += f"{rank:04d}/"
    return folder
