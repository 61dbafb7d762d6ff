"""Reads mutated inputs of some shapes, in a process of little memory and time; prints troubles.

python -m tests.base.shapes SHAPE FROM MANY
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import NamedTuple

from msgspec import json

from tests.lifecycle.builders import SAMPLES, a_beat, sample
from tests.mutations import mutated
from tradewind.api import wishes
from tradewind.base.decoding import decoder
from tradewind.base.errors import TradewindError
from tradewind.journal import journal
from tradewind.lifecycle import fold
from tradewind.model.run import Heartbeat
from tradewind.planning import document
from tradewind.providers import registry
from tradewind.report.curves import Curves
from tradewind.store.memory import MemoryStore
from tradewind.supervisor import outputs
from tradewind.torch.checkpoint import manifest

MOST_S, MOST_BYTES = 2, 200 << 20


class Shape(NamedTuple):
    true: bytes
    read: Callable[[bytes], object]


def _journal(data: bytes) -> object:
    store = MemoryStore()
    for number, line in enumerate(data.split(b"\n"), 1):
        store.create(f"runs/r/journal/{number:020d}.json", line)
    return fold(journal.read(store, "r"))


def _metrics(data: bytes) -> object:
    curves = Curves()
    curves.take(1, data.split(b"\n"))
    return curves.curves()


def _record(cloud: str, record: object) -> Shape:
    rentable = registry.rentable(cloud)

    def read(data: bytes) -> object:
        made = rentable.decoded(data)
        rentable.check(made, "gs://runs" if cloud == "gcp" else "s3://runs")
        return made, made.account, made.places

    return Shape(json.encode(record), read)


def _trace() -> wishes.TraceWish:
    from tradewind.providers.local.trace import Trace

    return wishes.TraceWish(traces={"z": Trace("t", "z", 2, (1, 0), (5.0, 9.0))}, began_s=0.0)


_FILES = {".metadata": (0, ()), "index.json": (9, (7,)), "__0_0.distcp": (9, (7,))}
SHAPES: dict[str, Shape] = {
    "heartbeat": Shape(json.encode(a_beat()), decoder(Heartbeat)),
    "journal": Shape(b"\n".join(json.encode(c) for c in sample(SAMPLES[0])), _journal),
    "manifest": Shape(
        manifest.Manifest(7, 1, 1, "000001/7-1", _FILES).encode(),
        lambda data: manifest.decode(data, "a manifest"),
    ),
    "rehearsal": Shape(json.encode(_trace()), wishes.decoded),
    "metrics": Shape(b'{"step":1,"loss":2.5,"at":1800000000}\n{"step":2,"loss":2}', _metrics),
    "outputs": Shape(
        b'{"leg":1,"rank":0,"files":[{"name":"c","path":"a","size":2,"sha256":"00"}]}',
        outputs._decode,
    ),
    "plan": Shape(
        b'{"kind":"tradewind plan","format":1,"made_at":"2026-11-15T12:00:00Z","plan":{},'
        b'"workload":{"name":"x","work":1.5}}',
        lambda data: document.read(data.decode("utf-8", "replace"), "a plan"),
    ),
    "ssh": _record(
        "ssh", {"hosts": {"box": {"target": "me@box", "region": "hosts", "gpus": {"A100": 8}}}}
    ),
    "slurm": _record("slurm", {"clusters": {"lab": {"user": "me", "folder": "/home/me/x"}}}),
    "kubernetes": _record(
        "kubernetes",
        {
            "clusters": {
                "home": {"context": "c", "server": "s", "namespace": "n", "service_account": "a"}
            }
        },
    ),
    "lambda": _record(
        "lambda",
        {"ssh_key": "k", "ssh_key_id": "1", "regions": ["r-1"], "bucket_provider": "aws"},
    ),
    "gcp": _record(
        "gcp",
        {
            "project": "p-1", "bucket": "runs", "bucket_location": "us-central1",
            "service_account": "a", "network": "n", "subnets": {"us-central1": "n"},
            "zones": {"us-central1": ["us-central1-a"]},
        },
    ),
    "aws": _record(
        "aws",
        {
            "account": "1" * 12, "bucket": "runs", "bucket_region": "us-east-1",
            "instance_profile": "p",
            "regions": {
                "us-east-1": {
                    "vpc": "vpc-1", "security_group": "sg-1", "subnets": {"use1-az1": "subnet-1"}
                }
            },
        },
    ),
}  # fmt: skip


class TooLong(BaseException):
    pass


def _late(number: int, frame: FrameType | None) -> None:
    raise TooLong


def main(name: str, first: int, many: int) -> None:
    shape = SHAPES[name]
    shape.read(shape.true) if name not in ("plan", "gcp") else None
    signal.signal(signal.SIGALRM, _late)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: SIM115, PTH123
    hardest = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, hardest))
    for seed in range(first, first + many):
        data = mutated(Random(f"{name}/{seed}"), shape.true)
        signal.alarm(10 * MOST_S)  # of the clock, for machines that are busy
        began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        try:
            shape.read(data)
        except TradewindError:
            pass
        except BaseException as error:
            print(f"{name} {seed}: {type(error).__name__}: {error}"[:300])  # noqa: T201
        signal.alarm(0)
        took = resource.getrusage(resource.RUSAGE_SELF).ru_utime - began
        if took > MOST_S:
            print(f"{name} {seed}: {took:.1f} s")  # noqa: T201


if __name__ == "__main__":
    for each in sys.argv[1].split(","):
        main(each, int(sys.argv[2]), int(sys.argv[3]))
