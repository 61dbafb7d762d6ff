"""`tradewind demo serve`: plan, two replicas, load, more of them, an interruption, the bill."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind.base import clock

if TYPE_CHECKING:
    from tradewind.api.services import Service

_RATE, _LOAD_S, _INTERRUPT_S, _NOTICE_S = 8, 75, 40.0, 15.0
_WORKLOAD = """\
name: demo
serve:
  model: llama-3.1-8b
  rate: 8/s
  input: 200
  output: 24
  ttft: 1s
  tpot: 60ms
  warm: 2
limits:
  providers: [aws]
  markets: [spot, on_demand]
run:
  command: python engine.py $PORT
service:
  port: {port}
  at_once: 4
  most: 4
  drain: 20s
  warm_up: '{{"prompt": "hello", "max_tokens": 1}}'
"""


def journey(home: Path) -> None:
    from tradewind.api import served
    from tradewind.api.services import Service
    from tradewind.base.errors import TradewindError
    from tradewind.cli.services import serve
    from tradewind.front import runner
    from tradewind.store import open as opened
    from tradewind.supervisor.meeting import free_port

    runner.program()  # said first, where it is missing
    folder = home / "service"
    folder.mkdir()
    engine = resources.files("tradewind.demo.serving").joinpath("engine.py").read_text()
    (folder / "engine.py").write_text(engine)
    path = folder / "chat.yaml"
    path.write_text(_WORKLOAD.format(port=free_port()))

    _heading(1, "Eight requests a second for an 8B model: on what, for how much?")
    plans = served.planned(path)
    spec = served.spec_of(plans)
    serve.show(plans, spec)

    _heading(2, "Replicas come up, with HAProxy before them")
    served.check(spec)
    service = Service(served.submit(opened(), spec, folder), opened())
    teller = serve.Teller(as_json=False)
    try:
        up = service.wait(lambda each: len(each.ready) >= 2, 120, on_progress=teller.tell)
        if not up:
            raise TradewindError(f"{service.id} did not come up", hint="its log is above")
        _heading(3, f"{_RATE} requests a second for {_LOAD_S} s, and a spot machine is interrupted")
        said = _load(service, teller)
        click.echo(said)
    finally:
        _heading(4, "It ends: running answers finish, every machine is given back")
        service.stop(timeout=0)
        service.wait(lambda each: each.state.phase == "closed", 180, on_progress=teller.tell)
    _heading(5, "The bill")
    from tradewind.cli.services.services import show_bill

    show_bill(service)


def _load(service: Service, teller: object) -> str:
    """By `tradewind load`; half-way a replica is preempted."""
    from tradewind.api import orders
    from tradewind.cli.services.serve import Teller

    assert isinstance(teller, Teller)
    words = ["load", f"{service.url}/v1", "--rate", str(_RATE), "--duration", f"{_LOAD_S}s"]
    words += ["--lengths", "40:24", "--ttft", "1s", "--tpot", "100ms"]
    click.echo(f"$ tradewind {' '.join(words)}")
    load = subprocess.Popen(
        [sys.executable, "-P", "-m", "tradewind", *words], stdout=subprocess.PIPE, text=True
    )
    begun, taken = clock.stopwatch(), False

    def over(each: Service) -> bool:
        nonlocal taken
        spot = [one for one in each.ready if one.market == "spot"]
        if not taken and spot and clock.stopwatch() - begun >= _INTERRUPT_S:
            taken = True
            click.secho(f"          {spot[0].name} gets {_NOTICE_S:.0f} s of notice", bold=True)
            orders.interrupt(each.store, spot[0].run_id, _NOTICE_S)
        return load.poll() is not None

    try:
        service.wait(over, 4 * _LOAD_S, on_progress=teller.tell)
    finally:
        load.kill() if load.poll() is None else None
    said, _ = load.communicate()
    return said


def _heading(number: int, text: str) -> None:
    click.echo()
    click.secho(f"{number}  {text}", bold=True)
