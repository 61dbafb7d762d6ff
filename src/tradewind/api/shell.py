"""How to come to a shell on one of a run's machines. Nothing listens there: of AWS's machines it is
Systems Manager that opens it, with or without a key of the user's own."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradewind.errors import MissingExtra, NotFound

if TYPE_CHECKING:
    from tradewind.model.run import Machine
    from tradewind.store.base import Store

_USER = "ubuntu"  # of all images that we start from


def machine(store: Store, run_id: str, rank: int) -> Machine:
    """The one of this rank that lives."""
    from tradewind import runs_store

    state = runs_store.load(store, run_id).state
    living = [each.machine for each in state.machines.values() if not each.ended]
    found = [each for each in living if each.rank == rank and each.machine_id in state.claimed]
    if found:
        return found[-1]
    ranks = sorted({each.rank for each in living if each.machine_id in state.claimed})
    raise NotFound(
        f"{run_id} has no machine of rank {rank} now",
        hint=f"it has {', '.join(map(str, ranks))}" if ranks else f"tradewind show {run_id}",
    )


def command(machine: Machine, key: str = "", words: Sequence[str] = ()) -> list[str]:
    """What to run to be there; `words` are run there instead of a shell."""
    if machine.machine_id.startswith("aws-"):
        return _aws(machine, key, words)
    return _local(machine, words)


def _aws(machine: Machine, key: str, words: Sequence[str]) -> list[str]:
    from tradewind.providers.aws.machines.listing import parted

    parts = parted(machine.machine_id)
    assert parts is not None
    region, instance = parts
    session = ["aws", "ssm", "start-session", "--region", region, "--target", instance]
    if not key:
        if not words:
            return session
        # As JSON: in the short form a comma would part it, and quotes would be lost.
        told = json.dumps({"command": [shlex.join(words)]})
        return [
            *session,
            *("--document-name", "AWS-StartInteractiveCommand", "--parameters", told),
        ]
    document = ["--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=%p"]
    through = " ".join([*session[:-1], "%h", *document])
    return [
        *("ssh", "-i", key, "-o", f"ProxyCommand={through}"),
        *(f"{_USER}@{instance}", *words),
    ]


def _local(machine: Machine, words: Sequence[str]) -> list[str]:
    """A shell in the folder of a machine that is this computer."""
    from tradewind.ownfiles import home

    folder = home() / "local" / "machines" / machine.machine_id
    inside = shlex.join(words) if words else "exec ${SHELL:-sh}"
    return ["sh", "-c", f"cd {shlex.quote(str(folder))} && {inside}"]


def needed(command: Sequence[str]) -> None:
    """Raises what is missing on this computer."""
    if shutil.which(command[0]) is None:
        raise MissingExtra(
            f"{command[0]} is not installed here",
            hint="install the AWS CLI and its Session Manager plugin"
            if command[0] == "aws"
            else f"install {command[0]}",
        )
    if "start-session" in " ".join(command) and shutil.which("session-manager-plugin") is None:
        raise MissingExtra(
            "the Session Manager plugin of the AWS CLI is not installed here",
            hint="docs.aws.amazon.com: Install the Session Manager plugin; --print shows the"
            " command for another computer",
        )
