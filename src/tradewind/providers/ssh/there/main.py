"""One question, one answer: a line of JSON each, over the connection that asks."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from tradewind.providers.ssh.there import drivers, gpus, kits, machines, relay
from tradewind.providers.ssh.there import folder as folders
from tradewind.providers.ssh.there import look as looks

ANSWER = "tradewind-answer "
"""Before the answer: a login shell may print what it likes."""


def answered(asked: dict[str, Any]) -> dict[str, Any]:
    root = folders.home(asked["folder"])
    owned = folders.owned(root, asked["owner"])
    match asked["do"]:
        case "look":
            return {"host": looks.look(root, owned, asked.get("probe", ""))}
        case "gpus":
            return {"gpus": [each.told() for each in gpus.look()]}
        case "reach":
            return {"reached": looks.reached(asked["addresses"])}
        case "make":
            return {"made": looks.made(owned)}
        case "launch":
            return machines.launch(owned, asked)
        case "list":
            return {"machines": machines.listed(owned)}
        case "end":
            return {"living": machines.end(owned, asked["machine_ids"])}
        case "kit":
            data = sys.stdin.buffer.read(asked.get("payload", 0))
            known = kits.there(owned, asked["sha256"])
            return {"path": known or (kits.take(owned, asked["sha256"], data) if data else "")}
        case "relay":
            return {"there": relay.is_there(owned, asked["socket"])}
        case "remove":
            return {"living": machines.removed(root, owned)}
    raise ValueError(f"unknown question {asked['do']!r}")


def main() -> None:
    # What was begun is finished, should the connection be cut: it is for the next to see.
    for number in (signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return  # the connection was cut before the whole question was here
    asked: dict[str, Any] = {}
    try:
        asked = json.loads(line)
        answer = answered(asked)
    except (OSError, ValueError, KeyError, drivers.NoGpus) as error:
        answer = {"error": f"{error}" or type(error).__name__}
    sys.stdout.write(f"\n{ANSWER}{json.dumps(answer)}\n")
    sys.stdout.flush()
    if answer.get("there"):
        root = folders.home(asked["folder"])
        relay.hold(folders.owned(root, asked["owner"]), asked["socket"])
