"""From a workload with `serve` to a service that is recorded.

As with `run --local`, the plan is rehearsed: each of its machines is a group of processes of this
computer, at the plan's price, and the front listens here. On rented machines: servedon.py.
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import json

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, TradewindError
from tradewind.model.service import EngineSpec, FrontSpec, Key, ServiceSpec

if TYPE_CHECKING:
    from tradewind.api.rented import On
    from tradewind.model import Workload
    from tradewind.model.run import Way
    from tradewind.model.serveplan import ServingPlans, ServingPool
    from tradewind.model.upkept import Upkept
    from tradewind.store.base import Store

ENGINE_PORT = 8000
"""On rented machines, where none is given: the rules of a network name ports."""
_LEAST_MOST = 4
_SLACK_S = 0.1
_ENGINE_VARIABLE = "TRADEWIND_ENGINE"


def planned(
    what: str | Path | Workload,
    points: Callable[[Path], Any] | None = None,
    on: On | None = None,
) -> ServingPlans:
    """`points` reads the user's own measurements, where the workload names some. `on`: for these
    clouds alone."""
    from tradewind import catalog as catalogs
    from tradewind import workload
    from tradewind.planning.serving.planner import Planner

    catalog, now = catalogs.load(), clock.now()
    if isinstance(what, str | Path):
        path = Path(what)
        if path.is_dir():
            raise NoAccess(f"{path} is a folder", hint="name the workload file")
        what = workload.load(str(path), now=now, known=workload.known_names(catalog))
    if what.serve is None:
        raise InvalidValue(
            f"workload {what.name} has no section serve: nothing is served",
            hint="`tradewind run` carries out other work; docs/services.md shows a service",
        )
    if what.run is None:
        raise InvalidValue(
            f"workload {what.name} says nothing about what to run",
            hint="add a section `run:` whose `command:` starts the engine at port $PORT",
        )
    if on is not None:
        what, catalog = on.limited(what), on.catalog(catalog, now)
    own = None
    assert what.serve is not None
    if what.serve.measured is not None:
        if points is None:
            raise InvalidValue(
                "serve.measured: measurements are read by the command", hint="tradewind serve FILE"
            )
        own = points(Path(what.serve.measured))
    plans = Planner(what, catalog, now=now, own=own).plans(explain=False)
    if plans.best is None:
        raise NotFound(
            "no plan keeps the targets", hint="`tradewind plan` with the same file says what would"
        )
    return plans


def spec_of(
    plans: ServingPlans,
    *,
    project: str = "",
    tags: Mapping[str, str] | None = None,
    on: On | None = None,
) -> ServiceSpec:
    """`on`: on rented machines, its front too."""
    import getpass

    from tradewind.api import servedon
    from tradewind.model.upkept import Upkept

    work, best = plans.workload, plans.best
    assert best is not None
    assert work.serve is not None
    assert work.run is not None
    wish = work.service or Upkept()
    pool = max(best.pools, key=lambda each: max(hour.rate for hour in each.hours))
    needed = max(hour.needed for hour in pool.hours)
    fewest = 0 if work.serve.scale_to_zero else max(work.serve.warm, 1)
    most = wish.most or max(2 * needed, fewest, _LEAST_MOST)
    if most < fewest:
        raise InvalidValue(
            f"service.most is {most}, and serve.warm wants {fewest} replicas always up",
            hint="raise the one, or lower the other",
        )
    at_once = wish.at_once or _at_once(pool, plans)
    spare = max((hour.on_demand + hour.spot - hour.needed for hour in pool.hours), default=0)
    job = {"engine": work.run.command, "command": _command()} | _rest_of(work)
    engine = EngineSpec(
        job=job,
        port=wish.engine_port or (ENGINE_PORT if on is not None else 0),
        health=wish.health,
        metrics=wish.metrics,
        up_within_s=wish.up_within_s,
        drain_s=wish.drain_s,
        at_once=at_once,
        warm_up=wish.warm_up or "",
        warm_path=wish.warm_path,
    )
    if on is not None:
        servedon.check(engine, wish)
    made = ServiceSpec(
        name=work.name,
        model=str(work.serve.model) if isinstance(work.serve.model, str) else work.name,
        front=_front(wish),
        engine=_with_variables(engine, work.run.env),
        ways=_ways(pool),
        start=min(max(needed, fewest, 1), most),
        fewest=fewest,
        most=most,
        on_demand=min(hour.on_demand for hour in pool.hours),
        spare=min(spare, 2),
        idle_s=wish.idle_s,
        goal=min(share for _, share in plans.targets.values()),
        slack_s=_slack_s(pool, plans),
        project=project,
        user=getpass.getuser(),
        tags=dict(tags or {}),
        predicted_month=best.cost,
    )
    return made if on is None else servedon.there(made, pool, wish, on)


def _command() -> str:
    from tradewind.supervisor.engine import COMMAND

    return COMMAND


def _rest_of(work: Workload) -> dict[str, Any]:
    run = work.run
    assert run is not None
    found = {"setup": run.setup, "secrets": dict(run.secrets), "include": run.include}
    return {name: value for name, value in found.items() if value}


def _with_variables(engine: EngineSpec, env: Mapping[str, str]) -> EngineSpec:
    """What the engine's process is told of it, as a variable of the replica's job."""
    from msgspec.structs import replace

    alone = replace(engine, job={"engine": engine.job["engine"]})
    told = {**env, _ENGINE_VARIABLE: json.encode(alone).decode()}
    return replace(engine, job={**engine.job, "env": told})


def _ways(pool: ServingPool) -> tuple[Way, ...]:
    from tradewind.api import fleet
    from tradewind.api.rented import LOCAL_START_S
    from tradewind.model.run import Way

    return tuple(
        Way(
            provider="local",
            region=pool.provider,
            zone=pool.region,
            instance_type=pool.instance_type,
            market=market,
            nodes=1,
            price=price,
            rate=1.0,
            start_s=LOCAL_START_S,
            facts=fleet.facts("local"),
        )
        for market, price in sorted(pool.price_hour.items(), key=lambda each: each[1])
    )


def _answer_s(pool: ServingPool, plans: ServingPlans) -> float:
    """What one answer takes at the fullest hour, by the plan's own figures."""
    told = pool.latency_ms
    whole = told.get("e2e")
    if whole:
        return whole / 1e3
    return ((told.get("ttft") or 0.0) + plans.output * (told.get("tpot") or 0.0)) / 1e3


def _at_once(pool: ServingPool, plans: ServingPlans) -> int:
    """Little's law: so many are at work when so many come in a second and each takes so long."""
    return max(round(pool.rate_per_machine * _answer_s(pool, plans)), 1)


def _slack_s(pool: ServingPool, plans: ServingPlans) -> float:
    left = [
        seconds - (pool.latency_ms.get(name) or 0.0) / 1e3
        for name, (seconds, _) in plans.targets.items()
        if name != "tpot"
    ]
    return max(min(left, default=_SLACK_S), _SLACK_S)


def _front(wish: Upkept) -> FrontSpec:
    return FrontSpec(
        port=wish.port,
        address=wish.address,
        certificate=str(Path(wish.certificate).absolute()) if wish.certificate else "",
        keys=tuple(_key(name, where) for name, where in wish.keys.items()),
        queue=wish.queue,
        queue_wait_s=float(wish.queue_wait_s),
        hold_s=float(wish.hold_s),
        body_bytes=wish.body_bytes,
        silence_s=float(wish.silence_s),
        affinity=wish.affinity or "",
    )


def _key(name: str, where: str) -> Key:
    """Only its hash leaves this process."""
    from tradewind.front.routes import Key as Checked

    scheme, _, place = where.partition(":")
    if scheme == "env":
        secret = os.environ.get(place, "")
        if not secret:
            raise InvalidValue(f"service.keys: {name}: the variable {place} is not set")
    else:
        try:
            secret = Path(place).expanduser().read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            words = getattr(error, "strerror", None) or error
            raise NoAccess(f"service.keys: {name}: {place} cannot be read: {words}") from None
    Checked.of(name, secret)  # its faults, in words
    return Key(name=name, sha256=hashlib.sha256(secret.encode()).hexdigest())


def check(spec: ServiceSpec) -> None:
    """What would keep it from coming up here: said before anything is recorded."""
    from tradewind.front import runner
    from tradewind.front.told import front_of
    from tradewind.providers.local.processes import need_linux

    front_of(spec.front, spec.engine.health, spec.slack_s)
    if spec.rented:
        return  # its accounts were asked when it was put there
    need_linux()
    runner.program()
    if spec.front.certificate and not Path(spec.front.certificate).is_file():
        raise NoAccess(f"there is no certificate {spec.front.certificate}")
    family = socket.AF_INET6 if ":" in spec.front.address else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((spec.front.address, spec.front.port))
        except OSError as error:
            raise NoAccess(
                f"the front cannot listen at {spec.front.address}:{spec.front.port}:"
                f" {error.strerror or error}",
                hint=f"service.port names another; `ss -ltnp sport = :{spec.front.port}` shows who"
                " has this one",
            ) from None


def submit(store: Store, spec: ServiceSpec, folder: Path) -> str:
    """Bundles the folder and records the service; returns its id."""
    from msgspec.structs import replace

    from tradewind.api import fleet, handed, owned
    from tradewind.base import steps
    from tradewind.controller.drive import performer
    from tradewind.controller.services import Services
    from tradewind.model import places
    from tradewind.services import decide
    from tradewind.services.fold import fold
    from tradewind.services.state import Replica
    from tradewind.supervisor import bundle

    service_id = clock.new_id(spec.name)
    state = fold(())
    state.service_id = service_id
    trial = decide.run_of(state, spec, Replica(1, "", spec.ways[0].market, 1, 1))
    values = {} if spec.rented else handed.read(trial)
    # Machines of a cloud read nothing but what is of runs.
    there = places.rented_bundle if spec.rented else places.service_bundle
    place = there(service_id)

    def drop() -> None:
        handed.drop(service_id)
        owned.drop_service(service_id)

    try:
        with tempfile.TemporaryDirectory() as scratch:
            include = spec.engine.job.get("include", ())
            packed = bundle.pack(folder, Path(scratch) / "bundle.tar.gz", include=include)
            sent = {"bundle": place, "bundle_sha256": packed.sha256}
            spec = replace(spec, engine=replace(spec.engine, job=spec.engine.job | sent))
            if not spec.rented:
                handed.keep(service_id, values)
                owned.keep_service(service_id, spec.engine.job)
            store.upload(place, packed.path)
    except TradewindError:
        drop()
        raise
    services = Services(fleet.clerk())
    if not steps.run(services.submit(service_id, spec), performer(store, {})):
        drop()
        raise InvalidValue(f"{service_id} could not be recorded", hint="run it again")
    return service_id
