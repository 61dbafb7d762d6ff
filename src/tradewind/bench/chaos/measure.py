"""Runs side by side on this computer, several controllers, and a killer among them.

New runs are submitted for as long as there is killing to be done; then it stops, and every run must
end well: succeeded, with the right steps and values, its log whole, and nothing left over. The seed
decides whom the killer wants and how long it waits. When exactly that meets which process is the
computer's affair, so a seed makes a failure likely again, not certain.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tradewind.base import clock
from tradewind.bench.chaos import job, left, records
from tradewind.bench.chaos.killer import Killed, Killer
from tradewind.journal import runs_store
from tradewind.lifecycle.state import RunState
from tradewind.model import places
from tradewind.model.run import Spec, Way
from tradewind.providers.local.provider import FACTS, LocalProvider
from tradewind.store.base import Store

STEPS = 60
CONTROLLERS = (("watch",), ("watch",), ("tick",))
"""Watchers agree who looks; ticks, one after another as by cron, do not ask."""
_SETTLE_S = 420.0
"""What broken code is given to end its runs after the last kill; whole code takes seconds, or
LOST_S where only a heartbeat tells."""
_TURN_S = 0.05
_TICK_EVERY_S = 3.0
_ZONES = 100
_GANG_EVERY = 4
"""Of so many runs one has two machines."""

Submit = Callable[[Spec, Path], str]
Progress = Callable[[int, int], None]


class Wish(Struct, frozen=True, kw_only=True):
    kills: int = 200
    runs: int = 6
    """Side by side."""
    seed: int = 0
    every_s: float = 1.0
    """Between two kills, on average."""


def measure(
    wish: Wish, root: Path, store: Store, submit: Submit, told: Progress = lambda done, total: None
) -> dict[str, Any]:
    """`root` is an empty folder of its own, and `root/home` must be $TRADEWIND_HOME."""
    home, scratch = root / "home", root / "records"
    scratch.mkdir()
    killer = Killer(home, clock.generator(wish.seed))
    begun = clock.stopwatch()
    try:
        with _controllers(root, store) as tend:
            run_ids = _rage(wish, root, store, submit, killer, tend, told)
            stopped = clock.stopwatch()
            _settled(store, tend)
            settled_s = clock.stopwatch() - stopped
        found = _figures(store, home, run_ids, records.read(scratch), killer.killed)
    finally:  # whatever was found, and also when it is interrupted: nothing of ours runs on
        machines = LocalProvider(home, store.url)
        machines.terminate([each.machine_id for each in machines.list_machines().machines])
    found |= {
        "seed": wish.seed,
        "settled_s": round(settled_s, 1),
        "took_s": round(clock.stopwatch() - begun, 1),
        "folder": str(root),
    }
    (root / "found.json").write_text(json.dumps(found, indent=1))
    return found


def is_whole(found: dict[str, Any]) -> bool:
    bad = ("lost_runs", "lost_log_bytes", "orphans", "doubled_lines", "torn_lines")
    return not any(found[name] for name in bad)


def _rage(
    wish: Wish,
    root: Path,
    store: Store,
    submit: Submit,
    killer: Killer,
    tend: Callable[[], None],
    told: Progress,
) -> list[str]:
    """Submits and kills; returns the ids of all runs there were."""
    bundle = root / "bundle"
    bundle.mkdir()
    shutil.copyfile(job.__file__, bundle / "job.py")
    chance = clock.generator(wish.seed + 1)
    submitted: list[str] = []
    kills, next_s = 0, clock.stopwatch() + 3 * wish.every_s
    while kills < wish.kills:
        tend()
        for _ in range(wish.runs - len(runs_store.live_ids(store))):
            gang = 2 if len(submitted) % _GANG_EVERY == 1 else 1
            submitted.append(submit(_spec(root, gang), bundle))
        if clock.stopwatch() >= next_s and killer.kill():
            kills += 1
            told(kills, wish.kills)
            next_s = clock.stopwatch() + chance.uniform(0, 2 * wish.every_s)
        clock.sleep(_TURN_S)
    return submitted


def _spec(root: Path, nodes: int) -> Spec:
    way = Way(
        provider="local", region="chaos", zone="", instance_type="small", market="spot",
        nodes=nodes, price=1_000_000, rate=1 / job.STEP_S, start_s=2.0, facts=FACTS,
    )  # fmt: skip
    return Spec(
        name="chaos",
        work=float(STEPS),
        # A zone that has taken a machine away is left alone for minutes.
        ways=tuple(replace(way, zone=f"zone-{number}") for number in range(_ZONES)),
        tries=1_000_000,  # a killed child looks like a failure of the job's own
        job={"command": f"python job.py {STEPS} '{root / 'records'}'"},
    )


@contextmanager
def _controllers(root: Path, store: Store) -> Iterator[Callable[[], None]]:
    """Gives what starts those again that are no more."""
    running: dict[int, subprocess.Popen[bytes]] = {}
    due_s = dict.fromkeys(range(len(CONTROLLERS)), 0.0)

    def tend() -> None:
        for number, words in enumerate(CONTROLLERS):
            process, now = running.get(number), clock.stopwatch()
            if (process is None or process.poll() is not None) and now >= due_s[number]:
                running[number] = _started(root / f"{words[0]}-{number}.log", words, store)
                due_s[number] = now + _TICK_EVERY_S if words == ("tick",) else 0.0

    try:
        yield tend
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def _started(log: Path, words: Sequence[str], store: Store) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tradewind", *words, "--store", store.url],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ},
        )


def _settled(store: Store, tend: Callable[[], None]) -> None:
    until = clock.stopwatch() + _SETTLE_S
    while runs_store.live_ids(store) and clock.stopwatch() < until:
        tend()
        clock.sleep(_TURN_S)


def _figures(
    store: Store, home: Path, run_ids: list[str], tries: list[records.Try], killed: Killed
) -> dict[str, Any]:
    _once(("tick",), store)  # as whoever comes back does, and finds what the dead have left
    states = {run_id: runs_store.load(store, run_id).state for run_id in run_ids}
    logs = {run_id: _log(store, run_id, state) for run_id, state in states.items()}
    verdict = records.judged(tries, logs, killed.machines)
    lost = {run_id: why for run_id in run_ids if (why := _wrong(store, run_id))}
    orphans = left.processes(home) + left.machines(home, store) + left.keys(store)
    orphans += left.files(home, store)
    recoveries = records.recoveries_s(tries, killed.moments)
    return {
        "kills": killed.kinds.total(),
        "lost_runs": len(lost),
        "lost_log_bytes": verdict.lost_bytes,
        "orphans": len(orphans),
        "median_recovery_s": records.middle(recoveries),
        "recoveries": len(recoveries),
        "longest_recovery_s": round(max(recoveries, default=0.0), 2),
        "log_bytes_gone_with_machines": verdict.gone_bytes,
        "oldest_gone_s": round(verdict.oldest_gone_s, 2),
        "log_bytes": sum(map(len, logs.values())),
        "log_lines": verdict.lines,
        "doubled_lines": verdict.doubled,
        "torn_lines": verdict.torn,
        "runs": len(run_ids),
        "legs": sum(len(state.requests) for state in states.values()),
        "machines": sum(len(state.machines) for state in states.values()),
        "processes_killed": killed.processes,
        "kinds": dict(killed.kinds),
        "why_lost": lost,
        "what_is_left": orphans[:50],
    }


def _log(store: Store, run_id: str, state: RunState) -> bytes:
    """Of all its machines, one after another."""
    ranks = {each.machine.rank for each in state.machines.values()}
    words = ("logs", run_id, "--rank")
    return b"".join(_once((*words, str(rank)), store) for rank in sorted(ranks))


def _once(words: Sequence[str], store: Store) -> bytes:
    return subprocess.run(
        [sys.executable, "-P", "-m", "tradewind", *words, "--store", store.url],
        check=False,
        stdout=subprocess.PIPE,
    ).stdout


def _wrong(store: Store, run_id: str) -> str:
    """What is wrong with a run that should have ended well; empty if nothing is."""
    state = runs_store.load(store, run_id).state
    if state.phase != "closed" or state.outcome != "succeeded":
        return f"it is {state.phase} {state.outcome}".strip()
    kept = store.list_after(places.checkpoints(run_id))
    for key in kept:
        saved = json.loads(store.get(key))
        if saved["value"] != job.chain(saved["step"]):
            return f"{key} holds wrong values"
    if not kept or json.loads(store.get(kept[-1]))["step"] != STEPS:
        return "its last checkpoint is not of its last step"
    return ""
