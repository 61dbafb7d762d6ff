"""A Python for an image that has none: `python3 inject.py FOLDER`, in a container of an image that
has one, with a folder that both containers see. Nothing but the standard library.

Copied are this Python and what its modules were linked with, but for the C library and its like:
those are the other image's own, which so must be of glibc, and no older.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import shutil
import sys
import sysconfig
from pathlib import Path

C_LIBRARY = ("ld-", "libc.", "libc-", "libm.", "libm-", "libpthread", "libdl.", "librt.", "libutil")
LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "idlelib", "turtledemo", "site-packages", "dist-packages", "__pycache__", "*.a"
)


def main(folder: Path) -> None:
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sysconfig.get_path("stdlib"))
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copytree(library, folder / "lib" / version, ignore=LEFT_OUT, dirs_exist_ok=True)
    program = folder / "bin" / version
    shutil.copy2(Path(sys.executable).resolve(), program)
    python3 = folder / "bin" / "python3"
    python3.unlink(missing_ok=True)
    python3.symlink_to(version)
    linked = folder / "linked"
    linked.mkdir(exist_ok=True)
    for each in _linked():
        if not each.is_relative_to(base / "lib" / version):
            shutil.copy2(each.resolve(), linked / each.name)


def _linked() -> set[Path]:
    """Shared libraries of this process, once it has all modules of the standard library that are
    no text."""
    for module in pkgutil.iter_modules([str(Path(sysconfig.get_path("stdlib")) / "lib-dynload")]):
        if not module.name.startswith(("_test", "_xx", "xx", "_tkinter")):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
    files = {Path(line.split(maxsplit=5)[5]) for line in maps if line.count("/")}
    return {
        each
        for each in files
        if ".so" in each.name and not each.name.startswith(C_LIBRARY) and each.is_file()
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
