"""`tradewind setup slurm` and `teardown`: looks at a cluster as any of its users can, shows what
there is, and makes one folder there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.base.units import format_hours
from tradewind.model import buckets
from tradewind.providers.changes import Line, Prepared
from tradewind.providers.slurm import cluster as clusters
from tradewind.providers.slurm import containers, jobs, names, parsing, room, shapes, troubles
from tradewind.providers.slurm.cluster import Sight
from tradewind.providers.slurm.footprint import Cluster, Footprint, setup_command
from tradewind.providers.slurm.login import Login
from tradewind.providers.slurm.shapes import Shape
from tradewind.providers.slurm.wish import Wish, named

_FOLDER = ".tradewind/slurm"
"""Below the user's home, which clusters share."""


class Look:
    """At clusters."""

    store_env: Mapping[str, str] | None = {}
    """The store is opened as anywhere else; it must be there."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._owner = names.owner_of(wish.store_url)

    def prepared(self, known: Footprint | None) -> Prepared[Footprint]:
        found = dict(known.clusters) if known else {}
        before = {each.login: each for each in found.values()}
        lines: list[Line] = []
        for where in self._wish.logins or tuple(before) or ("",):
            login = Login(where)
            sight = clusters.look(login)
            name = named(sight.name)
            if name in found and found[name].login != where and where not in before:
                lines.append(Line("login node", where or "here", name, there=True))
            made = self._cluster(sight, where, found.get(name))
            found[name] = made
            lines += self._lines(login, name, sight, made)
        home = buckets.home(self._wish.store_url) or ""
        region = self._wish.bucket_region or (known.bucket_region if known else "")
        record = Footprint(clusters=found, bucket_provider=home, bucket_region=region)
        return Prepared(lines, record.account, lambda: record)

    def _cluster(self, sight: Sight, where: str, before: Cluster | None) -> Cluster:
        wish = self._wish
        old = before or Cluster(user=sight.user, folder=f"{sight.home}/{_FOLDER}")
        made = replace(
            old,
            login=where,
            user=sight.user,
            version=sight.version,
            folder=wish.folder or old.folder,
            partitions=wish.partition or old.partitions,
            account=wish.account or old.account,
            qos=wish.qos or old.qos,
            constraint=wish.constraint or old.constraint,
            accelerators=wish.accelerators or old.accelerators,
            prepare=wish.prepare or old.prepare,
            scratch=wish.scratch or old.scratch,
            containers=wish.containers or old.containers,
            image=wish.image or old.image,
            unit_usd=wish.unit_usd or old.unit_usd,
            network_gbps=wish.network_gbps or old.network_gbps,
            interfaces=wish.interfaces or old.interfaces,
        )
        containers.check_paths(made, wish.store_url)
        for each in made.partitions:
            _must_be("partition", each, list(sight.partitions), sight.name)
        if made.account and sight.accounts:
            _must_be("account", made.account, list(sight.accounts), sight.name)
        if made.qos and sight.qos:
            _must_be("QOS", made.qos, list(sight.qos), sight.name)
        for each in made.accelerators:
            _must_be("partition", each, list(sight.partitions), sight.name)
        return made

    def _lines(self, login: Login, name: str, sight: Sight, made: Cluster) -> list[Line]:
        there = shapes.shapes(sight, made)
        whole = [each for each in there if each.whole] or there
        lines = [
            Line(
                "cluster",
                f"Slurm {sight.version}",
                name,
                there=True,
                remark=f"{sight.user} at {login.shown}",
            )
        ]
        lines += [
            Line("machines", each.name, name, there=True, remark=words(each)) for each in whole
        ]
        for partition in sight.partitions.values():
            why = shapes.why_not(sight, made, partition)
            if why and (partition.name in made.partitions or not made.partitions):
                lines.append(
                    Line("partition", partition.name, name, there=False, remark=f"not used: {why}")
                )
        if without := shapes.without_hours(sight, made):
            raise NoAccess(f"{name}: {without}", hint=troubles.HOURS)
        if not there:
            raise NotFound(
                f"{name} has no GPUs that its partitions let {sight.user} use"
                + "".join(f"; {each.name}: {each.remark}" for each in lines[1:4]),
                hint="`sinfo -o '%P %G %D %t'` lists what there is;"
                f" {setup_command(self._wish.store_url, made.login)} --account, --qos and"
                " --partition choose",
            )
        return [*lines, self._folder(login, name, made)]

    def _folder(self, login: Login, name: str, made: Cluster) -> Line:
        folder = shlex.quote(made.folder)
        parts = urlsplit(self._wish.store_url)
        store = unquote(parts.path) if parts.scheme == "file" else ""
        asked = login.ask(
            f"ask folder test -O {shlex.quote(f'{made.folder}/{names.mark(self._owner)}')}\n"
            f'ask home sh -c \'mkdir -p "$(dirname {folder})" && test -w "$(dirname {folder})"\'\n'
            + (f"ask store test -d {shlex.quote(store)}\n" if store else "")
            + room.asking(made.folder)
        )
        if store and asked["store"].code:
            raise InvalidValue(
                f"{login.shown} has no folder {store}, so nodes of {name} cannot reach the store",
                hint="a folder on a file system that the cluster and this computer share, by the"
                " same path; or a bucket: --store s3://BUCKET",
            )
        room.check(asked.get("room"), made.folder, login)
        line = Line("folder", made.folder, name, there=not asked["folder"].code)
        if asked["folder"].code:
            if asked["home"].code:
                raise NoAccess(
                    f"{made.folder} cannot be made on {login.shown}: {asked['home'].words}",
                    hint="--folder names one on a file system that all nodes share",
                )
            line.add(
                "make it; the nodes must share it", partial(_make, login, made.folder, self._owner)
            )
        return line

    def removed(self, known: Footprint | None, *, delete_store: bool) -> list[Line]:
        if delete_store:
            raise InvalidValue(
                "the store is not the cluster's", hint="teardown of its own cloud deletes a bucket"
            )
        lines = []
        for name, cluster in (known.clusters if known else {}).items():
            login = Login(cluster.login)
            answers = login.ask(jobs.asking(cluster.user))
            text = troubles.asked(answers.get("queue"), "squeue", login.shown)
            up = [r for r in parsing.queue(text, self._owner) if r.state not in troubles.ENDS]
            if up:
                raise InvalidValue(
                    f"jobs of {self._wish.store_url} are on {name}:"
                    f" {', '.join(each.name.text for each in up[:4])}",
                    hint=f"tradewind sweep --store {self._wish.store_url} ends what no run claims",
                )
            line = Line("folder", cluster.folder, name, there=True)
            line.add(
                "remove what is of this store", partial(_remove, login, cluster.folder, self._owner)
            )
            lines.append(line)
        return lines


def words(shape: Shape) -> str:
    """Of a kind of machines, for people."""
    limit = "no time limit" if shape.limit_s is None else f"{format_hours(shape.limit_s / 3600)}"
    told = [
        f"{shape.free} of {shape.machines} nodes free",
        f"{shape.gpus}× {shape.accelerator or 'a GPU of unknown type (--accelerator names it)'}",
        f"{shape.cpus} cores",
        limit if shape.limit_s is None else f"jobs of {limit} at most",
    ]
    if shape.spot:
        told.append(f"may be preempted, with {shape.grace_s} s of notice")
    if shape.units is not None:
        told.append(f"{shape.units:g} billing units")
    return ", ".join(told)


def _must_be(what: str, name: str, there: list[str], cluster: str) -> None:
    if name not in there:
        close = get_close_matches(name, there, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        raise NotFound(
            f"{cluster} has no {what} {name}{meant}",
            hint=f"there: {', '.join(there[:12])}" if there else "it has none",
            choices=there,
        )


def _make(login: Login, folder: str, owner: str) -> None:
    path, mark = shlex.quote(folder), shlex.quote(f"{folder}/{names.mark(owner)}")
    script = f"make() {{ mkdir -p {path} && : > {mark}; }}\numask 077\nask made make"
    made = login.ask(script, changes=True)["made"]
    if made.code:
        raise NoAccess(
            f"{folder} cannot be made on {login.shown}: {made.words}",
            hint="--folder names one on a file system that all nodes share",
        )


def _remove(login: Login, folder: str, owner: str) -> None:
    path = shlex.quote(folder)
    login.ask(
        f"rm -rf {path}/{names.PREFIX}{owner}-* {path}/{names.mark(owner)}\n"
        f"rmdir {path} 2> /dev/null\nask gone true",
        changes=True,
    )
