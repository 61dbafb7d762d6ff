"""A process of its own that launches, and dies by SIGKILL where it is told to.

    python -m tests.providers.launcher MODULE:FUNCTION ARGUMENT REQUEST STEP

FUNCTION(ARGUMENT) gives the provider; REQUEST is JSON. STEP n: killed before the n-th thing that it
does to the world outside (a file is opened to be written, made or renamed, a process started,
something sent); 0: never, it starts when a line comes on standard input. What it was sold is
written to standard output, as JSON.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import msgspec

from tradewind.model.run import Request

DEEDS = {"os.mkdir", "os.rename", "os.link", "os.remove", "fcntl.flock", "subprocess.Popen"}
DEEDS |= {"socket.connect", "socket.sendto", "http.client.send", "os.fork"}


def die_at(step: int) -> None:
    done = 0

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal done
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in DEEDS:
            done += 1
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(see)


if __name__ == "__main__":
    opened, argument, text, step = sys.argv[1:]
    module, function = opened.split(":")
    provider = getattr(importlib.import_module(module), function)(argument)
    request = msgspec.json.decode(text, type=Request)
    if int(step):
        die_at(int(step))
    else:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
    machines = provider.launch(request, 1)
    sys.stdout.write(msgspec.json.encode(machines).decode() + "\n")
