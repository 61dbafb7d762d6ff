"""How a container comes up and ends: real shells, and a server that gives the kit or does not."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.local_http import LocalHttp, Reply
from tests.providers.kubernetes.builders import a_request
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Luggage

WHO = "tradewind.providers.kubernetes"
TOOLS = ("cat", "cp", "dirname", "mkdir", "mkfifo", "rm", "sh", "sleep", "tee")
"""What any image with a shell has."""
ENDS_WELL = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"heard\\n"), sys.exit(5)))
print("begun", sys.argv[1], flush=True)
while True: time.sleep(0.05)
"""


def kit(bootstrap: str) -> bytes:
    wheel, tar = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tradewind/supervisor/bootstrap.py", bootstrap)
    with tarfile.open(fileobj=tar, mode="w") as archive_of_wheels:
        member = tarfile.TarInfo("tradewind-1-py3-none-any.whl")
        member.size = len(wheel.getvalue())
        archive_of_wheels.addfile(member, io.BytesIO(wheel.getvalue()))
    return tar.getvalue()


class Container:
    def __init__(self, folder: Path, server: LocalHttp) -> None:
        self.home, self.tools = folder / "home", folder / "bin"
        self._told, self._server = folder / "told", server
        self._told.mkdir()
        self.tools.mkdir()
        for name in TOOLS:
            found = next(p for p in ("/bin", "/usr/bin") if (Path(p) / name).exists())
            (self.tools / name).symlink_to(Path(found) / name)

    def start(self, data: bytes, *, python: str = sys.executable) -> subprocess.Popen[str]:
        self._server.on("/kit.tar", Reply(data))
        tell = tuple(f"{self._server.url}/tell/{rank}" for rank in range(2))
        for path in ("/tell/0", "/tell/1"):
            self._server.on(path, Reply(b""))
        luggage = Luggage(
            kit=f"{self._server.url}/kit.tar",
            sha256=hashlib.sha256(data).hexdigest(),
            tell=tell,
            environment={"GREETING": "it's fine"},
        )
        boot = told.boot(a_request(2), "s3://b/store", 3, "", "kubernetes")
        for name, text in told.files(boot, luggage, WHO).items():
            (self._told / name).write_text(text)
        if python:
            (self.tools / "python3").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
            (self.tools / "python3").chmod(0o755)
        return subprocess.Popen(
            ["/bin/sh", str(self._told / told.START)],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def environment(self) -> Mapping[str, str]:
        return {
            "PATH": str(self.tools),
            "TRADEWIND_HOME": str(self.home),
            "TRADEWIND_MACHINE_STEM": "kubernetes-home-tw-x",
            "TRADEWIND_HOST": "10.0.0.7",
            "JOB_COMPLETION_INDEX": "1",
        }

    def words(self) -> str:
        """What it left in the store."""
        puts = [each for each in self._server.requests if each.method == "PUT"]
        return "\n".join(f"{each.path}: {each.body.decode()}" for each in puts)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    with LocalHttp() as server:
        yield Container(tmp_path, server)


def test_sigterm_is_passed_on_and_its_code_is_the_container_s(container: Container) -> None:
    process = container.start(kit(ENDS_WELL))
    log = container.home / "first.log"
    eventually(lambda: log.exists() and "begun" in log.read_text())
    boot = (container.home / "boot.json").read_text()
    assert '"machine_id": "kubernetes-home-tw-x-1"' in boot
    assert '"host": "10.0.0.7"' in boot
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "heard" in said, "the container's log has all of it"
    assert "heard" in container.words(), "and so has the store, since it ended badly"
    assert "/tell/1:" in container.words()


def test_one_that_ends_well_says_nothing(container: Container) -> None:
    done = 'import os; print(os.environ["GREETING"], flush=True)'
    process = container.start(kit(done))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "it's fine" in said
    assert container.words() == ""


def test_an_image_without_python(container: Container) -> None:
    process = container.start(kit("pass"), python="")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == told.NO_PYTHON
    assert "no Python 3.11" in said


def test_a_python_that_another_image_brings(container: Container, tmp_path: Path) -> None:
    """Copied by its own interpreter, it runs from where it was copied to."""
    from tradewind.providers.boot import inject

    place = container.home / "python"
    code = subprocess.run(
        [sys._base_executable, "-P", inject.__file__, str(place)],  # type: ignore[attr-defined]
        env={"PATH": os.environ["PATH"]},
        check=False,
    ).returncode
    assert code == 0
    where = "import ssl, sqlite3, zlib, sys; print(sys.prefix, ssl.OPENSSL_VERSION, flush=True)"
    process = container.start(kit(where), python="")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert str(place) in said
