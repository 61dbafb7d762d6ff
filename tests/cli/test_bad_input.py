"""What users get wrong, typed as they type it: a clear word, an exit code, and nothing lost. What
needs a run that goes on is in tests/system/test_hostile_input.py."""

from __future__ import annotations

import os
import pty
import select
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.system.chain import Chain


def nothing_came_of_it(made: Chain) -> bool:
    return made.ids() == [] and not made.pids() and not (made.home / "local").exists()


def typed(made: Chain, answer: bytes) -> tuple[int, str]:
    """`tradewind run` in a terminal, and this answer when it asks."""
    work = str(made.job("true"))
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "tradewind", "run", work, "--local"]
        os.execve(sys.executable, command, made.env)
    said = b""
    while b"Start?" not in said:
        said += os.read(terminal, 4096)
    with suppress(OSError):  # how a terminal tells that nobody is left
        os.write(terminal, answer)
        while True:
            if not select.select([terminal], [], [], 5.0)[0]:
                os.write(terminal, answer)  # typed too soon: a terminal forgets when it is set up
                continue
            more = os.read(terminal, 4096)
            if not more:
                break
            said += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


@pytest.mark.parametrize(("answer", "code"), [(b"\x03", 130), (b"n\n", 0)])
def test_a_question_that_is_not_answered_with_yes(tmp_path: Path, answer: bytes, code: int) -> None:
    made = Chain(tmp_path)
    ended, said = typed(made, answer)
    assert "Traceback" not in said
    assert ended == code, said
    assert nothing_came_of_it(made)


def test_files_that_are_none(tmp_path: Path) -> None:
    made = Chain(tmp_path)
    work = str(made.job("true"))
    for arguments, words, code in [
        ((str(tmp_path),), f"{tmp_path} is a folder", 5),
        ((work, "--store", work + "/below"), "is a file, and a store is a folder", 2),
    ]:
        assert words in made.cli("run", *arguments, "--local", "--yes", code=code)
    assert nothing_came_of_it(made)
