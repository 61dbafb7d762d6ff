"""Whether jobs can be run on the clusters from here now. Nothing is submitted or changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tradewind.base import clock
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.finding import BROKEN, MISSING, OK, WARNING, About, Finding
from tradewind.providers.slurm import cluster as clusters
from tradewind.providers.slurm import jobs, names, parsing, room, shapes, troubles
from tradewind.providers.slurm.footprint import Cluster, Footprint, setup_command
from tradewind.providers.slurm.login import Login
from tradewind.providers.slurm.setup import words

_found = About("slurm")

_SKEW_S = 60


def checks(footprint: Footprint | None, *, known: bool, store_url: str) -> Iterator[Finding]:
    if footprint is None:
        if known:
            yield _found(
                MISSING,
                "nothing is set up for this store",
                why="runs on Slurm clusters",
                todo=setup_command(store_url),
            )
        return
    for name, cluster in footprint.clusters.items():
        try:
            yield from _cluster(name, cluster, store_url)
        except TradewindError as error:
            yield _found(
                BROKEN, f"{name} cannot be used from here", why=error.message, todo=error.hint or ""
            )


def _cluster(name: str, cluster: Cluster, store_url: str) -> Iterator[Finding]:
    login = Login(cluster.login)
    sight = clusters.look(login)
    yield _found(OK, f"{name}: {login.shown} answers as {sight.user}: Slurm {sight.version}")
    folder = shlex.quote(cluster.folder)
    asked = f"{jobs.asking(cluster.user)}ask folder test -w {folder}\n"
    answers = login.ask(asked + room.asking(cluster.folder))
    ahead = int(troubles.asked(answers.get("now"), "date", login.shown)) - clock.now().timestamp()
    if abs(ahead) > _SKEW_S:
        yield _found(
            WARNING,
            f"{name}: its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} ours",
            why="links may not be valid yet, or any more",
            todo="timedatectl tells whether this computer's clock is right",
        )
    if answers["folder"].code:
        yield _found(
            BROKEN,
            f"{name}: {cluster.folder} is not there, or cannot be written to",
            why="what jobs are told lies there",
            todo=setup_command(store_url, cluster.login),
        )
    try:
        room.check(answers.get("room"), cluster.folder, login)
    except NoAccess as error:
        yield _found(BROKEN, f"{name}: {error.message}", why="what jobs are told lies there",
                     todo=error.hint or "")  # fmt: skip
    there = shapes.shapes(sight, cluster)
    for shape in [each for each in there if each.whole] or there:
        level = OK if shape.accelerator else WARNING
        yield _found(
            level,
            f"{name}: {shape.name}: {words(shape)}",
            why="" if shape.accelerator else "runs are planned by types of accelerators",
            todo=""
            if shape.accelerator
            else f"{setup_command(store_url, cluster.login)} --accelerator {shape.partition}=NAME",
            measured={"machines": shape.machines, "free": shape.free},
        )
    without = shapes.without_hours(sight, cluster)
    if without:
        yield _found(
            BROKEN, f"{name}: {without}", why="Slurm starts no jobs of it", todo=troubles.HOURS
        )
    elif not there:
        yield _found(
            BROKEN,
            f"{name}: no partition has GPUs that {sight.user} may use",
            why="runs are planned for accelerators",
            todo="`sinfo -o '%P %G %D %t'` lists what there is",
        )
    if sight.proctrack not in ("cgroup", ""):
        yield _found(
            WARNING,
            f"{name}: processes are tracked by {sight.proctrack}",
            why="a preempted job's own processes are sent SIGTERM at once with its supervisor: what"
            " was done since its last checkpoint may be lost",
            todo="whoever runs the cluster sets ProctrackType=proctrack/cgroup",
        )
    text = troubles.asked(answers.get("queue"), "squeue", login.shown)
    up = [
        each
        for each in parsing.queue(text, names.owner_of(store_url))
        if each.state not in troubles.ENDS
    ]
    yield _found(OK, f"{name}: {len(up)} jobs of this store", measured={"jobs": len(up)})
