"""From what somebody wants done to a run that is recorded."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, TradewindError
from tradewind.base.units import format_hours

if TYPE_CHECKING:
    from tradewind.api.rented import On
    from tradewind.api.wishes import Wish
    from tradewind.model import Workload
    from tradewind.model.plan import Plan, Plans
    from tradewind.model.run import Spec
    from tradewind.model.windows import Schedule
    from tradewind.store.base import Store


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be carried out."""

    plan: Plan
    others: tuple[Plan, ...]
    """More that keep the same limits, should the first turn out slower than thought."""
    workload: Workload


def wanted(what: object, on: On | None = None, when: Schedule | None = None) -> Wanted:
    """Of a workload, which is planned now; of the path of a workload file or a saved plan; or of
    what the planner answered. `on`: planned for that cloud alone. `when`: for what a schedule
    leaves of the time until the deadline."""
    from tradewind.model import Workload
    from tradewind.model.plan import Plan, Plans
    from tradewind.planning.document import Saved

    if isinstance(what, str | Path):
        return _of_file(Path(what), on, when)
    if isinstance(what, Workload):
        return _planned(what, on, when)
    if isinstance(what, Plans):
        return _best(what)
    if isinstance(what, Saved):
        return Wanted(plan=what.plan, others=(), workload=what.workload)
    if isinstance(what, Plan):
        raise InvalidValue(
            "a plan alone does not say what to run",
            hint="give the workload, all that tradewind.plan(workload) answers, or a saved plan",
        )
    raise InvalidValue(
        f"{type(what).__name__} is nothing that can be run",
        hint="give a Workload, a path, or what tradewind.plan answers",
    )


def _of_file(path: Path, on: On | None, when: Schedule | None) -> Wanted:
    from tradewind.planning import document

    text = text_of(path)
    if text.lstrip().startswith("{"):
        return wanted(document.read(text, str(path)))
    from tradewind import catalog as catalogs
    from tradewind import workload

    known = workload.known_names(catalogs.load())
    return _planned(workload.load(str(path), now=clock.now(), known=known), on, when)


def text_of(path: Path) -> str:
    """Of a workload file or a saved plan."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        from tradewind.workload.files import beside

        raise NoAccess(f"there is no file {path}", hint=beside(path) or None) from None
    except IsADirectoryError:
        raise NoAccess(
            f"{path} is a folder", hint="name the workload or plan file; --folder is for the folder"
        ) from None
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InvalidValue(
            f"{path} is no text: byte {error.start} is no UTF-8",
            hint="name a workload file or a saved plan",
        ) from None


def _planned(work: Workload, on: On | None, when: Schedule | None) -> Wanted:
    from dataclasses import replace

    from tradewind import catalog as catalogs
    from tradewind.api import planned, scheduled
    from tradewind.planning import exact

    catalog, now = catalogs.load(), clock.now()
    asked, left_s = work, None
    if when is not None and work.limits:
        left_s = scheduled.within_s(when, now, work.limits.deadline_at(now))
    if left_s is not None:
        limits = replace(work.limits, deadline=None, within_s=max(left_s, 1))
        work = replace(work, limits=limits)
    if on is not None:
        work, catalog = on.limited(work), on.catalog(catalog, now)
    try:
        if work.machines is not None:
            found = _best(exact.plans(work, catalog=catalog, now=now))
        else:
            found = _best(planned.planner(work, catalog, now=now, on=on).plans())
    except NotFound as error:
        if left_s is None or when is None:
            raise
        told = f"until the deadline machines may be up for {format_hours(left_s / 3600)}"
        about = f"{when.words or 'the schedule'}: {told}, and {error.message}"
        raise NotFound(about, hint=error.hint) from None
    if left_s is None:
        return found
    # Its deadline is a moment again, whatever part of the time until then was planned with.
    limits = replace(
        found.workload.limits, deadline=asked.limits.deadline, within_s=asked.limits.within_s
    )
    return Wanted(
        plan=found.plan, others=found.others, workload=replace(found.workload, limits=limits)
    )


def _best(plans: Plans) -> Wanted:
    from tradewind.planning.words import what_binds

    if plans.best is None:
        raise NotFound("no plan keeps every limit", hint=what_binds(plans))
    # By value: the best one is among them, made once more.
    others = tuple(plan for plan in plans.plans if plan != plans.best)
    return Wanted(plan=plans.best, others=others, workload=plans.workload)


def spec_of(
    wanted: Wanted,
    *,
    local: bool,
    on: On | None = None,
    nodes: int | None = None,
    project: str = "",
    tags: Mapping[str, str] | None = None,
    speed: float = 1.0,
    when: Schedule | None = None,
) -> Spec:
    """`speed`: of the trace that is replayed; its world's time is the run's. `when`: InvalidValue
    where the work cannot be done in it."""
    import getpass

    from msgspec.structs import replace

    from tradewind.api import fleet, scheduled
    from tradewind.model.run import Facts
    from tradewind.planning import ways

    if not 0 < speed < inf:
        raise InvalidValue(
            f"a trace cannot be replayed at {speed} times its speed",
            hint="--trace-speed 60 makes a minute of an hour",
        )
    if not local and on is None:
        raise InvalidValue(
            "no target: add --on CLOUD or --local",
            hint="--on aws rents EC2 instances, --local runs on this computer at the plan's prices",
        )
    made = ways.spec(
        wanted.plan,
        wanted.workload,
        clock.now(),
        others=wanted.others,
        facts=fleet.facts if on is not None else lambda provider: Facts(),
        project=project,
        user=getpass.getuser(),
        tags=dict(tags or {}),
    )
    spec = here(made, nodes, speed) if on is None else on.there(made)
    if when is None:
        return spec
    spec = replace(spec, schedule=when)
    scheduled.check(spec, clock.now().timestamp())
    return spec


def as_begun(spec: Spec) -> tuple[Spec, str]:
    """With the machines in front that a controller would buy first now, which each launch decides
    by prices, starts and chances; and why they are not the plan's own choice, empty where they are.
    So what is shown is what runs."""
    from msgspec.structs import replace

    from tradewind.controller.loop import POLICY
    from tradewind.lifecycle.first import first

    begun = first(spec, clock.now().timestamp(), POLICY)
    if begun is None or begun[0].way == spec.ways[0]:
        return spec, ""
    way = begun[0].way
    return replace(spec, ways=(way, *(each for each in spec.ways if each != way))), begun[1]


def here(spec: Spec, nodes: int | None, speed: float = 1.0) -> Spec:
    """The same on this computer: each way keeps its price, and its place becomes a zone of ours.
    Where time goes faster, the price of an hour there is paid in less than one of ours."""
    from msgspec.structs import replace

    from tradewind.api import fleet, moving
    from tradewind.api.rented import LOCAL_START_S
    from tradewind.providers.local.provider import MOST_NODES

    moved = []
    for way in spec.ways:
        many = nodes or way.nodes
        if not 1 <= many <= MOST_NODES:
            raise InvalidValue(
                f"the plan has {many} machines, too many for this computer",
                hint="--nodes 2 tries it with two",
            )
        moved.append(
            replace(
                moving.unmeasured(way),
                provider="local",
                region=way.provider,
                zone=way.zone or way.region,
                nodes=many,
                price=round(way.price * speed),
                start_s=LOCAL_START_S,
                facts=fleet.facts("local"),
            )
        )
    times = speed * moved[0].nodes / spec.ways[0].nodes  # as fast as before, and each is paid
    predicted = spec.predicted_cost and round(spec.predicted_cost * times)
    return replace(spec, ways=tuple(moved), predicted_cost=predicted, speed=speed)


def not_sent(
    folder: Path, include: Sequence[str] | None = (), outputs: Sequence[str] | None = ()
) -> tuple[str, str] | None:
    """What git's ignore files keep back of what the job may need, and what to do for a job that
    needs it; None where it is nothing. What the job writes itself it does not need."""
    from tradewind.model import globs
    from tradewind.supervisor import bundle, leftout

    left = [
        each
        for each in bundle.left_out(folder, include or ())
        if not globs.fits(each.name.rstrip("/"), outputs or ())
    ]
    if not left:
        return None
    return leftout.in_words(left), leftout.advice(left, bundle.MOST_BYTES)


def submit(store: Store, spec: Spec, folder: Path, wish: Wish | None = None) -> str:
    """Bundles the folder and records the run; returns its id."""
    from msgspec import json
    from msgspec.structs import replace

    from tradewind.api import fleet, handed, owned, wishes
    from tradewind.base import steps
    from tradewind.controller.drive import performer
    from tradewind.model import places
    from tradewind.supervisor import bundle

    run_id = clock.new_id(spec.name)
    handed.check(spec, "keep it in the cloud's own store of secrets (docs/clouds)")
    values = handed.read(spec)

    def drop() -> None:
        for each in (wishes, handed, owned):
            each.drop(run_id)

    try:
        with tempfile.TemporaryDirectory() as place:
            include = spec.job.get("include", ())
            below = str(spec.job.get("workdir") or ".")
            outputs = [f"{below}/{each}" for each in spec.job.get("outputs") or ()]
            packed = bundle.pack(
                folder, Path(place) / "bundle.tar.gz", include=include, outputs=outputs
            )
            sent = {"bundle": places.bundle(run_id), "bundle_sha256": packed.sha256}
            spec = replace(spec, job=spec.job | sent)
            # What is needed here first: where a full disk refuses it, nothing is in the store.
            handed.keep(run_id, values)
            if any(way.provider == "local" for way in spec.ways):
                owned.keep(run_id, spec.job)
            if wish is not None:
                wishes.keep(run_id, wish)
            store.upload(places.bundle(run_id), packed.path)
            if wish is not None:
                store.replace(places.rehearsal(run_id), json.encode(wish))
    except TradewindError:
        drop()
        raise
    if not steps.run(fleet.clerk().submit(run_id, spec), performer(store, {})):
        drop()
        raise InvalidValue(
            f"submitting {run_id} took so long that it was given up", hint="run it again"
        )
    return run_id
