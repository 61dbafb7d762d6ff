"""A shell on a machine of EC2. Nothing listens there: Systems Manager opens it, with or without a
key of the user's own."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Sequence

from tradewind.base.errors import BadFile, MissingExtra
from tradewind.model.run import Machine
from tradewind.providers.aws.machines.listing import parted

_USER = "ubuntu"  # of all images that we start from


def command(machine: Machine, key: str, words: Sequence[str]) -> list[str]:
    parts = parted(machine.machine_id)
    if parts is None:
        raise BadFile(f"the journal has a machine {machine.machine_id!r}, which EC2 never has")
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


def check(command: Sequence[str]) -> None:
    if command[0] == "aws" and shutil.which("aws") is None:
        raise MissingExtra(
            "aws is not installed here",
            hint="install the AWS CLI and its Session Manager plugin",
        )
    if shutil.which("session-manager-plugin") is None:
        raise MissingExtra(
            "the Session Manager plugin of the AWS CLI is not installed here",
            hint="docs.aws.amazon.com: Install the Session Manager plugin; --print shows the"
            " command for another computer",
        )
