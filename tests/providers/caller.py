"""A process of its own that asks a provider for something, and dies by SIGKILL where it is told to.

    python -m tests.providers.caller MODULE:FUNCTION ARGUMENT STEP CALL TEXT

FUNCTION(ARGUMENT) gives the provider. CALL is launch, and TEXT a request, or terminate, and TEXT
ids of machines; both in JSON. STEP n: killed before the n-th thing that it
does to the world outside (a file is opened to be written, made or renamed, a process started,
something sent); 0: never, it begins when a line comes on standard input. The answer is written to
standard output, as JSON.
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
    opened, argument, step, call, text = sys.argv[1:]
    module, function = opened.split(":")
    provider = getattr(importlib.import_module(module), function)(argument)
    if int(step):
        die_at(int(step))
    else:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
    if call == "launch":
        answer = provider.launch(msgspec.json.decode(text, type=Request), 1)
    else:
        answer = provider.terminate(msgspec.json.decode(text))
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
