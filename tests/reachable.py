"""Programs of this environment for whoever runs as another user. Pods of a real cluster are user
1000, their image is this computer, and a Python below somebody's home is closed to them: then there
is a copy for them, as long as it is needed."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LEFT_OUT = shutil.ignore_patterns("site-packages", "test", "__pycache__", "config-*", "idlelib")
_PYTHON = """\
#!/bin/sh
export PYTHONPATH="{path}${{PYTHONPATH:+:$PYTHONPATH}}" LD_LIBRARY_PATH="{lib}"
exec {python} {words} "$@"
"""


@contextmanager
def programs() -> Iterator[Path]:
    """A folder with python, python3 and torchrun that all may run."""
    packages = Path(sysconfig.get_path("purelib"))
    for each in (packages, ROOT / "src"):
        assert not (shut := closed(each)), (
            f"pods run as user 1000, who may not enter {shut[0]}, where {each} is: have the"
            " checkout, with its .venv, where all may read"
        )
    own = Path(sys.executable)
    if not closed(own.resolve()):
        yield own.parent
        return
    place = Path(tempfile.mkdtemp(prefix="tradewind-python-"))
    try:
        place.chmod(0o755)
        yield copied(place, packages)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def closed(path: Path) -> list[Path]:
    """The folders above it that others may not enter."""
    return [each for each in path.parents if not each.stat().st_mode & 0o001]


def copied(place: Path, packages: Path) -> Path:
    base, lib = Path(sys.base_prefix), place / "lib"
    shutil.copytree(base / "lib" / _NAME, lib / _NAME, ignore=_LEFT_OUT, symlinks=True)
    for each in (base / "lib").glob("libpython*.so*"):
        shutil.copy(each, lib)
    python = place / "bin" / _NAME
    python.parent.mkdir()
    shutil.copy(Path(sys.executable).resolve(), python)
    made = place / "programs"
    made.mkdir()
    words = {"python": "", "python3": "", "torchrun": "-m torch.distributed.run"}
    for name, more in words.items():
        path = f"{ROOT / 'src'}:{packages}"
        text = _PYTHON.format(path=path, lib=lib, python=python, words=more)
        (made / name).write_text(text)
        (made / name).chmod(0o755)
    return made
