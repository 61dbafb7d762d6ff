"""How a job has ended badly, as people write it: an exit code, or the signal. Pure."""

from __future__ import annotations

import re
import signal

HOPELESS = "hopeless"
"""The trouble of a job that has failed by itself, and would again."""
_SHELL = 128
"""A shell says of signal N that it was exit code 128 + N."""


def code_of(text: str) -> int | None:
    """`75` and `SIGSEGV` as the codes they end with; None where it is neither."""
    plain = text.strip().upper()
    if re.fullmatch(r"\d{1,3}", plain, re.ASCII) and 1 <= int(plain) <= 255:
        return int(plain)
    if not plain.startswith("SIG"):
        plain = f"SIG{plain}"
    found = signal.Signals.__members__.get(plain)
    return None if found is None else _SHELL + found.value


def is_hopeless(retry_on: tuple[str, ...] | None, exit_code: int | None, trouble: str) -> bool:
    """Whether a failure of the job's own is not worth another try. What was killed by signal N has
    −N, or 128 + N from a shell."""
    if retry_on is None:
        return trouble == HOPELESS
    if exit_code is None:
        return True
    seen = _SHELL - exit_code if exit_code < 0 else exit_code
    return all(code_of(each) != seen for each in retry_on)
