from __future__ import annotations

import pytest

from tradewind.supervisor.exits import CODES, WORDS, blame


@pytest.mark.parametrize("code", [75, -9, 137, -7, 135, -15, 143, -1, 129, -2, 130])
def test_what_comes_from_outside_is_not_the_user_s(code: int) -> None:
    assert blame(code).trouble == "infrastructure"
    assert blame(code).reason


@pytest.mark.parametrize("code", [1, 2, -11, 139, -6, 134, -4, 255])
def test_everything_else_is(code: int) -> None:
    assert blame(code).trouble == "user"
    assert blame(code).reason


def test_nobody_is_to_blame_for_success() -> None:
    assert blame(0, "NCCL error") == ("", "", False)


@pytest.mark.parametrize(
    ("tail", "trouble"),
    [
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "infrastructure"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "infrastructure"),
        ("torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote", "infrastructure"),
        ("ncclSystemError: System call (e.g. socket, malloc) failed", "infrastructure"),
        ("Watchdog caught collective operation timeout: WorkNCCL(", "infrastructure"),
        ("  exitcode  : -9 (pid: 123)", "infrastructure"),
        ("torch.distributed.DistNetworkError: failed to connect", "infrastructure"),
        ("Bus error (core dumped)", "infrastructure"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "user"),
        ("CUDA error: device-side assert triggered\nNCCL error", "user"),
        ("ncclInvalidUsage: this usually reflects invalid usage", "user"),
        ("ValueError: bad batch", "user"),
        ("  exitcode  : 1 (pid: 123)", "user"),
    ],
)
def test_the_words_of_the_log(tail: str, trouble: str) -> None:
    assert blame(1, tail).trouble == trouble


ROOT_CAUSE = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  rank      : 1 (local_rank: 1)
  exitcode  : {other} (pid: 14520)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-18_20:53:02
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : {first} (pid: 14519)
  error_file: <N/A>
"""


@pytest.mark.parametrize(
    ("first", "other", "trouble"),
    [
        (143, 143, "infrastructure"),
        (-15, 143, "infrastructure"),
        (1, 143, "user"),  # whom torchrun asked to end when the first had failed
        (1, -15, "user"),
    ],
)
def test_torchrun_tells_which_worker_ended_first(first: int, other: int, trouble: str) -> None:
    found = blame(1, ROOT_CAUSE.format(first=first, other=other))
    assert (found.trouble, found.again) == (trouble, trouble == "infrastructure")


@pytest.mark.parametrize(
    ("code", "tail", "again"),
    [
        (-9, "", True),
        (137, "", True),
        (-15, "", True),
        (1, "  exitcode  : -9 (pid: 123)", True),
        (1, "  exitcode  : -7 (pid: 123)", False),
        (-7, "", False),
        (75, "", False),
        (137, "CUDA error: uncorrectable ECC error encountered", False),
        (137, "CUDA out of memory", False),
        (1, "", False),
    ],
)
def test_what_was_killed_is_worth_another_try_unless_the_machine_is_broken(
    code: int, tail: str, again: bool
) -> None:
    assert blame(code, tail).again == again


def test_each_row_has_a_reason() -> None:
    assert all(reason for _, _, reason in WORDS)
    assert all(CODES.values())


@pytest.mark.parametrize(
    ("code", "tail", "hopeless"),
    [
        (127, "sh: 1: torchrn: not found", True),
        (126, "", True),
        (1, "Traceback …\nModuleNotFoundError: No module named 'torch'\n", True),
        (1, '  File "a.py", line 1\nSyntaxError: invalid syntax', True),
        (2, "python: can't open file '/x/train.py': [Errno 2] No such file or directory", True),
        (1, "ModuleNotFoundError: No module named 'flash_attn'\nValueError: bad batch", False),
        (1, "ValueError: bad batch", False),
        (2, "", False),
        (75, "", False),
        (127, "CUDA error: uncorrectable ECC error encountered", False),
    ],
)
def test_what_would_end_the_same_again(code: int, tail: str, hopeless: bool) -> None:
    """Only the last line counts: what was met before it has been survived."""
    assert (blame(code, tail).trouble == "hopeless") == hopeless
