"""Jobs of Slurm, for whoever owns a store. A machine is one rank of a job, on a node of its own.

Slurm gives all nodes of a job at once and takes them back at once: who terminates one machine ends
them all. Safe from several threads.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from msgspec import ValidationError, convert
from msgspec.structs import replace

from tradewind.base.errors import InvalidValue
from tradewind.model.run import JOB, Listing, Machine, Queued, Request
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Pack
from tradewind.providers.slurm import jobs, names, parsing, script, troubles
from tradewind.providers.slurm.footprint import Cluster, Footprint, setup_command
from tradewind.providers.slurm.jobs import Job
from tradewind.providers.slurm.login import Answer, Login, Unreachable
from tradewind.providers.slurm.script import Asked

NAME = "slurm"
_WHO = "tradewind.providers.slurm"
_STALE_MINUTES = 1440
"""A folder of a launch that Slurm has never heard of: whoever made it was cut off."""
_TOLD = 300
"""Characters of what a failed job has printed last."""


class SlurmProvider:
    def __init__(self, footprint: Footprint, owner: str, pack: Pack) -> None:
        """`owner` is the store's URL. `pack` puts together what machines of a request take
        along."""
        self._footprint, self._store_url, self._pack = footprint, owner, pack
        self._owner = names.owner_of(owner)
        self._logins = {name: Login(each.login) for name, each in footprint.clusters.items()}
        self._over: dict[str, tuple[list[str], list[int]]] = {}
        """By cluster, of the last listing: folders of launches that are over, and jobs that should
        not be there."""

    # -- what there is -----------------------------------------------------------------------------

    def list_machines(self) -> Listing:
        """Of all clusters: one that does not answer hides its machines, so then there is none."""
        machines: list[Machine] = []
        queued: list[Queued] = []
        at_s = 0
        for name, cluster in self._footprint.clusters.items():
            at_s, found = self._listed(name, cluster)
            machines += [each for job in found for each in job.machines(name)]
            queued += [job.queued() for job in found if job.waits]
        return Listing(at_s=at_s, machines=tuple(machines), queued=tuple(queued))

    def _listed(self, name: str, cluster: Cluster) -> tuple[int, list[Job]]:
        folder = shlex.quote(cluster.folder)
        stem = f"{names.PREFIX}{self._owner}-"
        answers = self._logins[name].ask(
            jobs.asking(cluster.user)
            + f"ask folders sh -c 'cd {folder} && ls -1' 2> /dev/null\n"
            + f'ask stale sh -c \'cd {folder} && find . -maxdepth 1 -name "{stem}*"'
            f" -mmin +{_STALE_MINUTES}' 2> /dev/null\n"
        )
        at_s, every = self._agreed(name, cluster, answers)
        firsts, doubles = jobs.firsts(every)
        there = [e for e in answers["folders"].text.split() if e.startswith(stem)]
        stale = {e.removeprefix("./") for e in answers["stale"].text.split()}
        ended = {job.name.text for job in firsts if job.ended_s is not None}
        known = {job.name.text for job in firsts}
        self._over[name] = (
            [each for each in there if each in ended or (each in stale and each not in known)],
            [job.job_id for job in doubles if job.ended_s is None],
        )
        failed = [job for job in firsts if job.by == JOB and job.name.text in there]
        return at_s, self._placed(name, self._explained(name, cluster, firsts, failed))

    def _placed(self, name: str, found: list[Job]) -> list[Job]:
        """With the place in the queue of those that wait, where it is told: it is for people."""
        if not any(job.waits for job in found):
            return found
        try:
            line = self._logins[name].ask(jobs.asking_line())["line"]
        except Unreachable:
            return found
        places = parsing.places(line.text) if not line.code else {}
        return [
            replace(job, place=places.get(job.job_id, 0)) if job.waits else job for job in found
        ]

    def _explained(
        self, name: str, cluster: Cluster, found: list[Job], failed: list[Job]
    ) -> list[Job]:
        """With what those have printed last that have failed, while it is there."""
        if not failed:
            return found
        asks = "".join(
            f"ask {job.name.text} tail -c {_TOLD}"
            f" {shlex.quote(f'{cluster.folder}/{job.name.text}/out')}\n"
            for job in failed
        )
        try:
            answers = self._logins[name].ask(asks)
        except Unreachable:
            return found
        return [
            replace(job, why=f"{job.why}: {' '.join(said.text.split())}")
            if (said := answers.get(job.name.text)) and said.text and job in failed
            else job
            for job in found
        ]

    def _agreed(
        self, name: str, cluster: Cluster, answers: Mapping[str, Answer]
    ) -> tuple[int, list[Job]]:
        login = self._logins[name]
        where = login.shown
        at_s = int(troubles.asked(answers.get("now"), "date", where))
        queue = parsing.queue(troubles.asked(answers.get("queue"), "squeue", where), self._owner)
        book = parsing.book(troubles.asked(answers.get("book"), "sacct", where), self._owner)
        unsure = jobs.doubtful(queue, book)
        gone = jobs.denied(login.ask(jobs.asking_for(sorted(unsure)))) if unsure else set()
        uid = troubles.asked(answers.get("uid"), "id", where).strip()
        return at_s, jobs.agreed(queue, book, at_s, uid=uid, gone=gone)

    # -- launching ---------------------------------------------------------------------------------

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        way = request.way
        cluster = self._footprint.clusters.get(way.region)
        if cluster is None:
            raise Refused(
                "not_found",
                f"the cluster {way.region} is not set up",
                hint=setup_command(self._store_url),
            )
        try:
            asked = convert(way.layout.get(NAME), Asked)
            name = names.made(self._owner, request)
        except ValidationError:
            raise Refused(
                "not_found",
                f"nobody has found out what {way.instance_type} is to be asked for as",
                hint="submit the run again",
            ) from None
        except InvalidValue as error:
            raise Refused("not_allowed", error.message, hint=error.hint) from None
        files = self._files(cluster, asked, request, name, after, key)
        flags = script.flags(cluster, asked, request, name, self._store_url)
        login = self._logins[way.region]
        answers = login.ask(script.launch(cluster, name, flags, files), changes=True)
        doing = f"submitting {way.words}"
        if answers["ours"].code:
            raise Refused(
                "not_allowed",
                f"{doing}: {cluster.folder} on {login.shown} was not set up for this store",
                hint=f"nothing is launched by what the store says alone;"
                f" {setup_command(self._store_url, cluster.login)} makes its folder there",
            )
        if answers["folder"].code:
            where = f"{cluster.folder}/{name.text} cannot be made or locked"
            raise troubles.unprepared(answers["folder"], f"{doing}: {where}")
        if answers["known"].code:
            raise Unreachable(
                f"{doing}: whether it was submitted before, Slurm does not tell:"
                f" {answers['known'].words}",
                hint="`scontrol ping` tells whether Slurm is up",
            )
        if "sbatch" in answers and answers["sbatch"].code:
            raise troubles.submitting(answers["sbatch"], doing)
        return self._submitted(name, cluster, way.region, answers, doing)

    def _submitted(
        self,
        name: names.Name,
        cluster: Cluster,
        place: str,
        answers: Mapping[str, Answer],
        doing: str,
    ) -> Sequence[Machine]:
        try:
            _, found = self._agreed(place, cluster, answers)
        except Unreachable as error:
            raise OutcomeUnknown(f"{doing}: {error.message}", hint=error.hint) from error
        first = next((j for j in jobs.firsts(found)[0] if j.name == name), None)
        return first.machines(place) if first else []

    def _files(
        self,
        cluster: Cluster,
        asked: Asked,
        request: Request,
        name: names.Name,
        after: int,
        key: str,
    ) -> dict[str, str]:
        luggage = self._pack(request, asked.arch)
        limited = replace(request, hard_stop_s=script.up_s(asked, request.hard_stop_s))
        boot = told.boot(limited, self._store_url, after, key, NAME)
        files = told.files(boot, luggage, _WHO)
        del files[told.INJECT]
        return files | {
            "batch.sh": script.batch(
                cluster, asked, request, name, request.way.region, self._store_url
            ),
            "rank.sh": script.rank(cluster, asked, name, self._store_url),
        }

    # -- taking back -------------------------------------------------------------------------------

    def terminate(self, machine_ids: Sequence[str]) -> None:
        wanted = set(machine_ids)
        for place, cluster in self._footprint.clusters.items():
            if not any(each.startswith(f"{names.ID_PREFIX}{place}-") for each in wanted):
                continue
            _, found = self._agreed(
                place, cluster, self._logins[place].ask(jobs.asking(cluster.user))
            )
            # With a job, those of its name that wait for its end: else one of them would begin.
            names_of = {
                job.name
                for job in found
                if job.lives and wanted & {each.machine_id for each in job.machines(place)}
            }
            self._cancel(
                place,
                [job.job_id for job in found if job.ended_s is None and job.name in names_of],
            )

    def withdraw(self, launch_ids: Sequence[str]) -> None:
        wanted = set(launch_ids)
        for place, cluster in self._footprint.clusters.items():
            _, found = self._agreed(
                place, cluster, self._logins[place].ask(jobs.asking(cluster.user))
            )
            going = [j.job_id for j in found if j.ended_s is None and j.name.launch_id in wanted]
            self._cancel(place, going)

    def _cancel(self, place: str, numbers: Sequence[int]) -> None:
        """A job that has ended meanwhile is no trouble: scancel says so, and is not believed
        otherwise either: the next listing tells."""
        if not numbers:
            return
        login = self._logins[place]
        words = " ".join(map(str, numbers))
        answer = login.ask(f"ask cancel scancel {words}", changes=True)["cancel"]
        if answer.code and "Invalid job id" not in answer.errors:
            raise OutcomeUnknown(
                f"{login.shown}: scancel {words}: {answer.words}",
                hint="`scontrol ping` tells whether Slurm is up",
            )

    def tidy(self) -> None:
        for place, (folders, doubles) in list(self._over.items()):
            cluster = self._footprint.clusters[place]
            self._cancel(place, doubles)
            if folders:
                paths = " ".join(shlex.quote(f"{cluster.folder}/{each}") for each in folders)
                self._logins[place].ask(f"ask rm rm -rf {paths}", changes=True)
            self._over.pop(place, None)
