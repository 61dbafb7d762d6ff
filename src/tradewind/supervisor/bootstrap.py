"""From a bare machine to a supervisor: `python3 bootstrap.py boot.json`, and nothing else.

The one file of ours that a machine is given with its boot.json. It needs the standard library of
Python 3.11 or newer, and no package index. It

1. runs `boot.python`, if that can import Tradewind; else 2. takes the kit (`boot.kit`: a folder of
wheels, or a tar of them at a path, a file:// or an https:// URL), checks that it hashes to what its
name says (`…/<sha256>/kit.tar`, or `#sha256=…` behind it), and installs it below the folder of
boot.json: into a virtual environment, where there is no such thing with `pip --target`, and where
there is no pip by unpacking the wheels; 3. runs `-m tradewind.supervisor boot.json`, again when it
was killed, and ends as it ends.

When this ends the machine is to be turned off by whatever launched it: all is done, or nothing can
be.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import signal
import site
import subprocess
import sys
import tarfile
import time
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

_MODULE = "tradewind.supervisor"
_TIMEOUT_S = 60
_MOST_BYTES = 1 << 30
_RESTARTS_S = (1, 2, 5, 10, 30)
"""Before a supervisor that was killed is started again; after the last of them it is not."""
_LIVED_S = 600
"""One that has lived for so long was killed by chance: the pauses begin anew."""


class Trouble(Exception):
    pass


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("usage: python3 bootstrap.py boot.json", file=sys.stderr)  # noqa: T201
        return 2
    path = Path(argv[0]).absolute()
    try:
        if sys.version_info < (3, 11):  # noqa: UP036 -- the machine's, not ours
            raise Trouble(f"this is Python {platform.python_version()}; 3.11 or newer is needed")
        try:
            boot = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise Trouble(f"{path} cannot be read: {error}") from None
        return _supervise([*_interpreter(boot, path.parent), str(path)])
    except Trouble as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1


def _interpreter(boot: dict[str, Any], folder: Path) -> list[str]:
    """The command that runs the supervisor, but for its argument."""
    python = boot.get("python") or ""
    if python and _runs([python, "-P", "-c", f"import {_MODULE}.runtime"]):
        return [python, "-P", "-m", _MODULE]
    if not boot.get("kit"):
        raise Trouble(f"{python or 'no interpreter'} has Tradewind, and boot.json names no kit")
    installed = folder / "kit"
    for way in (_in_venv, _in_target, _in_unzipped):
        command = way(installed / way.__name__, None)
        if command:
            return command  # by an earlier start on this machine
    wheels = _wheels(boot["kit"], folder)
    said = []
    for way in (_in_venv, _in_target, _in_unzipped):
        try:
            command = way(installed / way.__name__, wheels)
            if command:
                return command
            said.append(f"{way.__name__}: what was installed does not run")
        except (OSError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
            said.append(f"{way.__name__}: {error}")
    raise Trouble("the kit cannot be installed: " + "; ".join(said))


def _in_venv(place: Path, wheels: Path | None) -> list[str] | None:
    python = str(place / "bin" / "python")
    if wheels is not None:
        _do([sys.executable, "-P", "-m", "venv", "--clear", str(place)])
        _do([*_pip(python, wheels), *_names(wheels)])
        # What the machine's own Python has (PyTorch, say) the job should have too, behind ours.
        inside = [*place.glob("lib/python3*/site-packages")]
        (inside[0] / "machine.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return (
        [python, "-P", "-m", _MODULE]
        if _runs([python, "-P", "-c", f"import {_MODULE}.runtime"])
        else None
    )


def _in_target(place: Path, wheels: Path | None) -> list[str] | None:
    if wheels is not None:
        shutil.rmtree(place, ignore_errors=True)
        _do([*_pip(sys.executable, wheels), "--target", str(place), *_names(wheels)])
    return _with_path(place)


def _in_unzipped(place: Path, wheels: Path | None) -> list[str] | None:
    """A wheel of ours is a zip whose content is what is installed."""
    if wheels is not None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for wheel in sorted(wheels.glob("*.whl")):
            if _fits(wheel.stem):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(place)  # which keeps names within the folder
    return _with_path(place)


def _with_path(place: Path) -> list[str] | None:
    """Not by PYTHONPATH, which the job would inherit."""
    begin = f"import sys; sys.path.insert(0, {str(place)!r}); "
    if not place.is_dir():
        return None
    if not _runs([sys.executable, "-P", "-c", begin + f"import {_MODULE}.runtime"]):
        return None
    run = f"from {_MODULE}.__main__ import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-P", "-c", begin + run]


def _pip(python: str, wheels: Path) -> list[str]:
    # Without dependencies: the kit has what the supervisor needs, and not what the rest would.
    return [python, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-index", "--no-deps", "--find-links", str(wheels)]  # fmt: skip


def _names(wheels: Path) -> list[str]:
    return sorted({wheel.name.split("-")[0] for wheel in wheels.glob("*.whl")})


def _fits(
    stem: str,
    minor: int = sys.version_info.minor,
    machine: str = platform.machine(),
) -> bool:
    """Whether a wheel is for this Python: name-version-python-abi-platforms."""
    python, abi, platforms = stem.split("-")[-3:]
    if python == "py3":
        return True
    version = re.fullmatch(r"cp3(\d+)", python)
    system = "macosx" if sys.platform == "darwin" else "(many)?linux"  # and not musllinux
    ours = re.compile(rf"{system}[0-9_]*_{re.escape(machine)}")
    if version is None or not any(map(ours.fullmatch, platforms.split("."))):
        return False
    found = int(version[1])
    return found == minor if abi != "abi3" else found <= minor


def _wheels(kit: str, folder: Path) -> Path:
    address, _, fragment = kit.partition("#")
    parts = urllib.parse.urlsplit(address)
    if parts.scheme in ("", "file"):
        source = Path(urllib.parse.unquote(parts.path) if parts.scheme else address)
        if source.is_dir():
            return source
    elif parts.scheme != "https":
        raise Trouble(f"the kit cannot be downloaded by {parts.scheme}://")
    wanted = fragment.removeprefix("sha256=") or Path(parts.path).parent.name
    if not re.fullmatch(r"[0-9a-f]{64}", wanted):
        raise Trouble(f"nothing says what the kit {address} must hash to")
    tar = folder / "kit.tar"
    try:
        if parts.scheme == "https":
            _download(address, tar)
        else:
            shutil.copyfile(source, tar)
        with tar.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise Trouble(f"the kit {address} cannot be downloaded: {error}") from None
    if digest != wanted:
        raise Trouble(f"the kit {address} is not what it should be: its hash is {digest}")
    return _untarred(tar, folder / "wheels")


def _download(address: str, tar: Path) -> None:
    with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer, tar.open("wb") as stream:
        while data := answer.read(1 << 20):
            stream.write(data)
            if stream.tell() > _MOST_BYTES:
                raise OSError("it is too large")


def _untarred(tar: Path, wheels: Path) -> Path:
    wheels.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tar) as archive:
        for member in archive:
            source = archive.extractfile(member)
            if source is None or not re.fullmatch(r"[\w.+-]+\.whl", member.name):
                raise Trouble(f"{member.name} in the kit is no wheel")
            with (wheels / member.name).open("wb") as out:
                shutil.copyfileobj(source, out)
    return wheels


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise subprocess.SubprocessError(f"{command[2:4]}: {lines[-1]}")


def _runs(command: list[str]) -> bool:
    try:
        # Not here, where a folder of the user's could stand in for a module of ours.
        return subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0
    except OSError:
        return False


def _supervise(command: list[str]) -> int:
    """A supervisor that was killed has taken its job with it; the next one begins the job again.
    One that dies again and again, for want of memory, would do so for ever: then the machine is
    given up, and the run goes on elsewhere or fails."""
    pauses = iter(_RESTARTS_S)
    children: list[subprocess.Popen[bytes]] = []
    asked: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        asked.append(number)
        for child in children[-1:]:
            child.send_signal(number)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, pass_on)
    while True:
        began = time.monotonic()  # noqa: TID251 -- none of Tradewind is here
        children.append(subprocess.Popen(command, cwd="/"))
        code = children[-1].wait()
        if code >= 0 or asked:
            return max(code, 0)
        if time.monotonic() - began >= _LIVED_S:  # noqa: TID251
            pauses = iter(_RESTARTS_S)
        pause = next(pauses, None)
        if pause is None:
            raise Trouble(f"the supervisor was killed {len(children)} times (signal {-code})")
        time.sleep(pause)  # noqa: TID251
        if asked:
            return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
