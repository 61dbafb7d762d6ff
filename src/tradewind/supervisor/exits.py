"""Whose fault it is that a job has ended badly. Pure: `blame(code, tail)`.

`user`: the same would happen anywhere; after some tries the run has failed. `infrastructure`: this
machine, its neighbours or the network; the run goes on elsewhere, and no try is counted. Where it
cannot be told, it is the user's: a broken script that is moved from machine to machine costs money
until the budget ends, a broken machine that is tried three times costs minutes.

`hopeless`: the user's, and the next try would end the same: there is no such command, file or
module, or the script cannot be parsed. It is not tried again, unless the user says so.

`again`: infrastructure's, but nothing says that the machine is broken. The job was killed, for
want of memory or by hand. It is worth another try in place, for as long as that gets it further.

First the words of the log's tail, in the order of the table, then the code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tradewind.model.failures import HOPELESS


class Blame(NamedTuple):
    trouble: str
    """user, hopeless, infrastructure; empty after 0"""
    reason: str
    again: bool = False


_USER, _INFRASTRUCTURE = "user", "infrastructure"
_KILLED = "a worker was killed (SIGKILL)"
_ASKED = "a worker was asked to end (SIGTERM)"

WORDS: tuple[tuple[str, str, str], ...] = (
    # A user's own, though they look like trouble of the machine: first.
    (r"CUDA out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED", _USER, "out of GPU memory"),
    (r"device-side assert triggered", _USER, "an assertion failed on the GPU"),
    (r"illegal memory access|misaligned address", _USER, "a kernel touched memory it may not"),
    (r"ncclInvalid(Usage|Argument)", _USER, "NCCL was called wrongly"),
    # The GPU.
    (r"\bXid\b.{0,80}\d", _INFRASTRUCTURE, "the GPU's driver reported an Xid error"),
    (r"uncorrectable ECC|ECC_UNCORRECTABLE|ECCUncorrectable", _INFRASTRUCTURE, "GPU memory error"),
    (r"fallen off the bus|GPU is lost|GPU_IS_LOST", _INFRASTRUCTURE, "the GPU is gone"),
    (r"CUDA error: (unknown error|hardware|unspecified launch failure|device\(s\) is/are busy)",
     _INFRASTRUCTURE, "the GPU failed"),
    (r"no CUDA-capable device|CUDA driver initialization failed|system not yet initialized",
     _INFRASTRUCTURE, "the GPU cannot be used"),
    (r"NVLink.{0,40}(error|fail)", _INFRASTRUCTURE, "a link between GPUs failed"),
    # The others of the gang, and what is between them.
    (r"nccl(System|Internal|Remote|UnhandledCuda)Error|NCCL (error|WARN.{0,60}(fail|timeout))",
     _INFRASTRUCTURE, "NCCL failed: a GPU, a link or another machine"),
    (r"Watchdog caught collective operation timeout|NCCL.{0,60}timed? ?out",
     _INFRASTRUCTURE, "the others did not answer"),
    (r"DistNetworkError|DistStoreError|RendezvousTimeoutError|RendezvousConnectionError",
     _INFRASTRUCTURE, "the other machines could not be reached"),
    (r"Connection (closed|reset) by peer.{0,200}(gloo|ProcessGroup)|gloo.{0,200}Connection (closed|"
     r"reset) by peer", _INFRASTRUCTURE, "another machine went away"),
    # What torchrun, make or a shell say of their children.
    (r"exitcode\s*:\s*-9\b", _INFRASTRUCTURE, _KILLED),
    # Of the first worker that ended, as torchrun itself asks the others: a rank on another machine
    # told it, and it saved and obeyed.
    (r"Root Cause \(first observed failure\):(?:(?!exitcode).){0,400}exitcode\s*:\s*(?:143|-15)\b",
     _INFRASTRUCTURE, _ASKED),
    (r"exitcode\s*:\s*-7\b", _INFRASTRUCTURE, "a worker's bus error: memory, disk or a device"),
    (r"Bus error", _INFRASTRUCTURE, "a bus error: memory, disk or a device"),
)  # fmt: skip

CODES: dict[int, str] = {
    75: "it asked to be tried again elsewhere (EX_TEMPFAIL)",
    -1: "SIGHUP from outside",
    -2: "SIGINT from outside",
    -7: "a bus error: memory, disk or a device",
    -9: "killed (SIGKILL): most often the host ran out of memory (OOM killer)",
    -15: "SIGTERM from outside",
}
"""Infrastructure's; a shell tells of signal N as 128 + N."""
_AGAIN = (-1, -2, -9, -15)
_NOT_THERE = {126: "the command cannot be executed", 127: "there is no such command"}
_SAME_AGAIN = re.compile(
    r"(?:ModuleNotFoundError|SyntaxError|IndentationError|TabError): .*"
    r"|\S*python\S*: can't open file .*: \[Errno 2\] .*"
)
"""Of the last line that is not empty: what was met before it has been survived."""

_WORDS = tuple((re.compile(words, re.DOTALL), trouble, why) for words, trouble, why in WORDS)


def blame(code: int, tail: str = "") -> Blame:
    if code == 0:
        return Blame("", "")
    for words, trouble, reason in _WORDS:
        if words.search(tail):
            return Blame(trouble, reason, reason in (_KILLED, _ASKED))
    signal = 128 - code if 128 < code < 160 else code
    if signal in CODES:
        return Blame(_INFRASTRUCTURE, CODES[signal], signal in _AGAIN)
    if code in _NOT_THERE:
        return Blame(HOPELESS, f"{_NOT_THERE[code]} (exit code {code})")
    last = tail.rstrip().rpartition("\n")[2].strip()
    if _SAME_AGAIN.fullmatch(last):
        return Blame(HOPELESS, f"it would end the same again: {last}")
    if signal < 0:
        return Blame(_USER, f"the job died of signal {-signal}")
    return Blame(_USER, f"the job ended with exit code {code}")
