"""What `setup aws` and `teardown` ask, answered on a real terminal as people answer: yes, no,
nonsense, the wrong name, nothing at all, Ctrl-C, Ctrl-D."""

from __future__ import annotations

import os
import pty
import select
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.providers.aws import account_server as server

pytestmark = pytest.mark.slow

STORE = "s3://my-bucket/tw"
SETUP = ("setup", "aws", "--store", STORE, "--region", "us-east-1")
TEARDOWN = ("teardown", "aws", "--store", STORE)
MAKE, REMOVE, NAME = "Make it?", "Remove it?", "Type its name"
INTERRUPTED, END = b"\x03", b"\x04"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server.served() as found:
        yield found


@pytest.fixture(autouse=True)
def account(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    server.entered(url, monkeypatch, tmp_path)


def typed(arguments: tuple[str, ...], question: str, *answers: bytes) -> tuple[int, str]:
    """The exit code, and all that was shown. Each answer is typed when it asks (once more)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "tradewind", *arguments])
    said, given, silent_s = b"", 0, 0
    with suppress(OSError):  # how a terminal tells that nobody is left
        while silent_s < 60:
            if said.count(question.encode()) > given and given < len(answers):
                os.write(terminal, answers[given])
                given += 1
            if not select.select([terminal], [], [], 5.0)[0]:
                silent_s += 5
                if given:  # typed too soon: a terminal forgets when it is set up
                    os.write(terminal, answers[given - 1])
                continue
            more = os.read(terminal, 4096)
            if not more:
                break
            said += more
    os.close(terminal)
    assert given == len(answers), said.decode()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def buckets() -> list[str]:
    return [each["Name"] for each in server.client("s3").list_buckets()["Buckets"]]


def roles() -> list[str]:
    return [each["RoleName"] for each in server.client("iam").list_roles()["Roles"]]


def made() -> None:
    code, said = typed((*SETUP, "--yes"), MAKE)
    assert code == 0, said
    assert MAKE not in said
    assert buckets() == ["my-bucket"]


def test_yes() -> None:
    code, said = typed(SETUP, MAKE, b"y\n")
    assert code == 0, said
    shown = said.partition(MAKE)[0]  # all of it, though a terminal of 80 columns is narrow
    assert "all public" in shown
    assert "…" not in shown
    assert "made, and written down in the store" in said
    assert buckets() == ["my-bucket"]
    code, said = typed(SETUP, MAKE)  # nothing is asked where there is nothing to do
    assert (code, "nothing to do" in said) == (0, True)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ((b"n\n",), 0),
        ((b"\n",), 0),
        ((b"perhaps\n", b"n\n"), 0),
        ((INTERRUPTED,), 130),
        ((END,), 130),
    ],
    ids=["no", "nothing typed", "nonsense is asked again", "ctrl-c", "ctrl-d"],
)
def test_anything_but_yes_makes_nothing(answers: tuple[bytes, ...], code: int) -> None:
    ended, said = typed(SETUP, MAKE, *answers)
    assert "Traceback" not in said
    assert ended == code, said
    assert (buckets(), roles()) == ([], [])


@pytest.mark.parametrize(
    ("answers", "code"),
    [((b"n\n",), 0), ((INTERRUPTED,), 130), ((END,), 130)],
    ids=["no", "ctrl-c", "ctrl-d"],
)
def test_anything_but_yes_removes_nothing(answers: tuple[bytes, ...], code: int) -> None:
    made()
    before = roles()
    ended, said = typed(TEARDOWN, REMOVE, *answers)
    assert "Traceback" not in said
    assert ended == code, said
    assert roles() == before
    ended, said = typed(TEARDOWN, REMOVE, b"y\n")
    assert (ended, roles()) == (0, []), said
    assert "the bucket my-bucket and all in it stay" in said


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (b"y\n", 0, "that is not its name"),
        (b"my-bucke\n", 0, "that is not its name"),
        (b"s3://my-bucket\n", 0, "that is not its name"),
        (INTERRUPTED, 130, ""),
        (END, 130, ""),
    ],
    ids=["yes is not enough", "nearly", "its url", "ctrl-c", "ctrl-d"],
)
def test_a_bucket_goes_only_by_its_name(answer: bytes, code: int, words: str) -> None:
    made()
    server.client("s3").put_object(Bucket="my-bucket", Key="tw/runs/x", Body=b"a week of work")
    before = roles()
    ended, said = typed((*TEARDOWN, "--delete-bucket"), NAME, answer)
    assert "Traceback" not in said
    assert ended == code, said
    assert words in said
    assert (buckets(), roles()) == (["my-bucket"], before)


def test_a_bucket_goes_by_its_name() -> None:
    made()
    server.client("s3").put_object(Bucket="my-bucket", Key="tw/runs/x", Body=b"a week of work")
    ended, said = typed((*TEARDOWN, "--delete-bucket"), NAME, b" my-bucket \n")
    assert ended == 0, said
    assert (buckets(), roles()) == ([], [])


@pytest.mark.parametrize("arguments", [SETUP, TEARDOWN, (*TEARDOWN, "--delete-bucket")])
def test_nobody_is_there_to_be_asked(arguments: tuple[str, ...]) -> None:
    import subprocess

    if arguments is not SETUP:
        made()
    before = (buckets(), roles())
    for more, given in ((), b"y\nmy-bucket\n"), (("--json",), b""):
        ran = subprocess.run(
            [sys.executable, "-m", "tradewind", *arguments, *more],
            input=given,
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode == 2
        assert b"add --yes" in ran.stderr
    assert (buckets(), roles()) == before
