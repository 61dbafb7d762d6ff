"""A base for images, made of this computer's own files: no registry is needed.

A shell, what makes users, and the Python of the tests, with the libraries that they load.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

COMMANDS = ("sh", "env", "install", "cat", "ls", "id", "mkdir", "rm", "chown")
ADMIN = ("groupadd", "useradd")
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
NAME = "localhost/tradewind-test-base"


def environment(folder: Path) -> dict[str, str]:
    """buildah as anybody may run it, within containers too; its images stay in the folder."""
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}\n')
    return {
        **os.environ,
        "BUILDAH_ISOLATION": "chroot",
        "STORAGE_DRIVER": "vfs",
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "TMPDIR": str(folder),
    }


def make(folder: Path, env: dict[str, str]) -> str:
    root = folder / "root"
    for path in _files():
        target = root / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    for name in ("etc", "tmp", "home", "root", "proc", "dev", "var/cache/apt", "var/lib/apt"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    base = Path(sys.base_prefix)
    left = shutil.ignore_patterns("test", "tests", "__pycache__", "site-packages", "*.a", "share")
    shutil.copytree(base, root / base.relative_to("/"), symlinks=True, ignore=left)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    (root / f"usr/bin/python{PYTHON}").symlink_to(base / "bin" / f"python{PYTHON}")
    _opened(root / base.relative_to("/"))
    made = subprocess.run(
        ["buildah", "from", "scratch"], env=env, check=True, capture_output=True, text=True
    ).stdout.strip()
    for words in (
        ["copy", made, str(root), "/"],
        ["config", "--env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", made],
        ["commit", "--rm", made, NAME],
    ):
        subprocess.run(["buildah", *words], env=env, check=True, capture_output=True)
    return NAME


def _opened(path: Path) -> None:
    """The job's user must reach it, wherever it lies here."""
    while path.name:
        path.chmod(path.stat().st_mode | 0o055)
        path = path.parent
        if path.name == "root" and path.parent.name != "root":
            break


def _files() -> set[Path]:
    wanted = {Path(f"/usr/bin/{name}") for name in COMMANDS}
    wanted |= {Path(f"/bin/{name}") for name in ("sh",)}
    wanted |= {Path(f"/usr/sbin/{name}") for name in ADMIN}
    base = Path(sys.base_prefix)
    loaded = [*wanted, base / "bin" / f"python{PYTHON}", *base.rglob("*.so")]
    libraries = set()
    said = subprocess.run(["ldd", *map(str, loaded)], capture_output=True, text=True).stdout
    for found in re.findall(r"(/\S+\.so\S*)", said):
        path = Path(found)
        if path.is_absolute() and not path.is_relative_to(base) and path.exists():
            libraries.add(path)
    return {path for path in wanted if path.exists()} | libraries
