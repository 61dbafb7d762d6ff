"""Processes that have imported PyTorch already: `python -m tests.torch.nursery [MODULE …]`.

Importing it takes seconds, and the tests of sessions start dozens of processes. This one imports it
once, with the modules whose `main` is to be run (tests.torch.train is one), and forks: a line of
JSON on standard input is a process to start (its module, arguments, environment and log) or to wait
for; a line on standard output is its pid, or its exit code.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any


def child(asked: dict[str, Any]) -> None:
    train = import_module(asked["module"])
    os.setsid()
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    sys.argv = ["train.py", *asked["arguments"]]
    code = 0
    try:
        train.main()
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
    import torch.distributed.algorithms._checkpoint.checkpoint_wrapper
    import torch.distributed.fsdp
    import torch.distributed.pipelining
    import torch.distributed.tensor.parallel  # and what these bring: seconds that each would wait

    answers = os.dup(1)
    os.dup2(2, 1)  # libraries have something to say when they are imported
    for module in sys.argv[1:]:
        import_module(module)
    torch.set_num_threads(1)
    gc.freeze()  # what is imported is nobody's state: sessions look at what is made after this
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            _, status = os.waitpid(asked["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                os.close(answers)
                child(asked)
        os.write(answers, b"%d\n" % answer)


if __name__ == "__main__":
    main()
