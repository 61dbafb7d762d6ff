"""Processes that have imported PyTorch already: `python -m tests.torch.nursery`.

Importing it takes seconds, and the tests of sessions start dozens of processes. This one imports it
once and forks: a line of JSON on standard input is a process to start (its arguments, environment
and log) or to wait for; a line on standard output is its pid, or its exit code.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any


def child(asked: dict[str, Any]) -> None:
    os.setsid()
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    script = import_module(asked.get("script", "tests.torch.train"))
    sys.argv = [f"{script.__name__}.py", *asked["arguments"]]
    code = 0
    try:
        script.main()
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    import torch
    import torch._dynamo  # optimizers ask for it
    import torch.distributed.tensor  # and what these bring along: seconds that each would wait

    from tests.torch import train

    assert train
    torch.set_num_threads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            _, status = os.waitpid(asked["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                child(asked)
        os.write(1, b"%d\n" % answer)


if __name__ == "__main__":
    main()
