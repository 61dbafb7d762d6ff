"""Whoever runs as another user has a Python with all that tests need, wherever ours lies."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import reachable


@pytest.fixture
def folder() -> Iterator[Path]:
    """That all may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="tradewind-python-") as made:
        place = Path(made)
        place.chmod(0o755)
        yield place


def test_a_copy_has_what_this_environment_has(folder: Path) -> None:
    made = reachable.copied(folder, Path(sysconfig.get_path("purelib")))
    words = "import msgspec, ssl, tradewind.torch.sessions; print(tradewind.__file__)"
    who = {"user": 1000, "group": 1000, "extra_groups": []} if os.getuid() == 0 else {}
    said = subprocess.run(
        [made / "python", "-c", words],
        env={"PATH": "/usr/bin:/bin"}, cwd="/", capture_output=True, text=True, check=False, **who,
    )  # type: ignore[call-overload]  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == str(reachable.ROOT / "src/tradewind/__init__.py")


def test_what_others_may_not_enter(folder: Path) -> None:
    inner = folder / "home" / "bin"
    inner.mkdir(parents=True)
    assert reachable.closed(inner / "python") == []
    (folder / "home").chmod(0o700)
    assert reachable.closed(inner / "python") == [folder / "home"]
