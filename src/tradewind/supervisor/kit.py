"""The kit: what a machine that has only Python needs to become a supervisor, as one tar of wheels.

Tradewind itself and what its supervisor imports: msgspec, nvidia-ml-py, and obstore where the store
is a bucket.
Made from what is installed here, so that both sides run the same; for other Pythons and processors
than this one pip fetches the same versions. The name of a kit is the hash of its content, under
which it lies in the store (`kits/<sha256>/kit.tar`) and by which the machine checks it
(`bootstrap.py`).

What is in a kit runs as root on machines, so nothing gets into it unseen: installed files must be
those that their wheel brought (its RECORD), and wheels that are fetched must hash to what we ship
(`kit_hashes.json`). With that, which package index the user's pip asks makes no difference.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import tradewind
from tradewind.base.errors import BadFile, NotFound, SourceFailed
from tradewind.store.base import Store

_ALWAYS = ("msgspec", "nvidia-ml-py")
_PROCESSORS = ("x86_64", "aarch64")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_SYSTEMS = ("manylinux_2_28", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
_HASHES = Path(__file__).with_name("kit_hashes.json")
_LEFT_OUT = ("catalog/data/", "__pycache__/")  # prices: megabytes that no supervisor reads


def needed(store_url: str) -> tuple[str, ...]:
    bucket = store_url.partition("://")[0] in ("s3", "gs", "az")
    return (*_ALWAYS, "obstore") if bucket else _ALWAYS


def build(
    store_url: str,
    *,
    targets: Sequence[tuple[str, str]] = (),
    wished: Sequence[tuple[str, str]] = (),
) -> bytes:
    """`targets` are others than this computer: a version of Python and a processor, such as
    ("3.12", "x86_64"), ("3.11", "aarch64"). They need the package index. So do those that are
    `wished`, which are left out where there are no such wheels."""
    installed = dict(map(_installed_wheel, needed(store_url)))
    wheels = dict([_own_wheel(), *installed.items()])
    others = (*targets, *wished)
    if others:  # of what is installed here, only what some machine with Linux can use
        wheels = {name: data for name, data in wheels.items() if _is_for_linux(name)}
    compiled = [name.split("-")[0] for name in installed if not is_pure(name)]
    with ThreadPoolExecutor(max(1, len(others))) as pool:
        told = pool.map(lambda target: _tried(compiled, *target), others)
        for target, found in zip(others, told, strict=True):
            if isinstance(found, SourceFailed):
                if target in targets:
                    raise found
            else:
                wheels |= {name: data for name, data in found.items() if not _has(wheels, name)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(wheels):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(wheels[name]), 0o644
            tar.addfile(info, io.BytesIO(wheels[name]))
    return out.getvalue()


def is_pure(wheel: str) -> bool:
    """Whether it is for every computer, by its name."""
    return wheel.endswith("-none-any.whl")


def _is_for_linux(wheel: str) -> bool:
    return is_pure(wheel) or "linux" in wheel.rpartition("-")[2]


def _has(wheels: Iterable[str], name: str) -> bool:
    """One for several Pythons is fetched for each, and may be called otherwise here. Of two
    versions the one that is installed here goes along."""
    package, _, *python, system = name.split("-")
    processor = next((each for each in _PROCESSORS if each in system), "")
    parts = [other.split("-") for other in wheels]
    return any(
        [one, *tags] == [package, *python] and processor in place for one, _, *tags, place in parts
    )


def key(kit: bytes) -> str:
    return f"kits/{hashlib.sha256(kit).hexdigest()}/kit.tar"


def publish(store: Store, kit: bytes) -> str:
    """Its key; a kit that is there already is the same."""
    place = key(kit)
    if not store.list_after(place.rpartition("/")[0] + "/"):
        store.create(place, kit)
    return place


def _own_wheel() -> tuple[str, bytes]:
    """Without its dependencies: most of them are for the user's side."""
    root = Path(tradewind.__file__).parent
    files = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not any(part in f"{name}/" for part in _LEFT_OUT):
            files[f"tradewind/{name}"] = path.read_bytes()
    info = f"tradewind-{tradewind.__version__}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: tradewind\nVersion: {tradewind.__version__}\n".encode()
    )
    tag = "py3-none-any"
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tradewind\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    )
    return f"tradewind-{tradewind.__version__}-{tag}.whl", _zipped(files, info)


def _installed_wheel(name: str) -> tuple[str, bytes]:
    """The wheel that it was installed from, put together again."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise NotFound(
            f"{name} is not installed here", hint="pip install 'tradewind[cloud]'"
        ) from None
    files = dict(_files_of(name, found))
    wheel = (found.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ") for line in wheel if line.startswith("Tag: ")]
    if not tags or not files:
        raise NotFound(f"{name} was not installed from a wheel here, so none can be made of it")
    written = f"{name.replace('-', '_')}-{found.version}"  # a wheel's name has dashes for its parts
    info = f"{written}.dist-info"
    # Several tags (manylinux_2_17 and 2014) are one wheel: their last parts, joined.
    python, abi, _ = tags[0].split("-")
    platforms = ".".join(tag.split("-")[2] for tag in tags)
    return f"{written}-{python}-{abi}-{platforms}.whl", _zipped(files, info)


def _files_of(name: str, found: metadata.Distribution) -> Iterator[tuple[str, bytes]]:
    """As they were installed: each must have the hash that was recorded then."""
    # Not: what the installer wrote, what Python compiled, and scripts outside of the package.
    made_here = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
    for path in found.files or ():
        if path.suffix != ".pyc" and path.name not in made_here and ".." not in path.parts:
            place = Path(path.locate())
            data = place.read_bytes() if place.is_file() else None
            if data is None or path.hash is None or path.hash.value != _digest(data):
                raise BadFile(
                    f"{place} is not as {name} {found.version} was installed, and would run as root"
                    " on machines",
                    hint=f"pip install --force-reinstall --no-deps {name}=={found.version}",
                )
            yield path.as_posix(), data


def _zipped(files: dict[str, bytes], info: str) -> bytes:
    record = "".join(_record(name, data) for name, data in sorted(files.items()))
    whole = {**dict(sorted(files.items())), f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in whole.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return out.getvalue()


def _record(name: str, data: bytes) -> str:
    return f"{name},sha256={_digest(data)},{len(data)}\n"


def _digest(data: bytes) -> str:
    """As a RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _tried(names: Sequence[str], python: str, processor: str) -> dict[str, bytes] | SourceFailed:
    try:
        return _fetched(names, python, processor)
    except SourceFailed as error:
        return error


def _fetched(names: Sequence[str], python: str, processor: str) -> dict[str, bytes]:
    wanted = {name: _known(name) for name in names}
    told = " ".join(f"{name}=={version}" for name, (version, _) in wanted.items())
    # pip takes each for itself: a newer one does not stand for the older.
    platforms = [f"--platform={system}_{processor}" for system in _SYSTEMS]
    with tempfile.TemporaryDirectory() as folder:
        hashed = Path(folder) / "requirements.txt"
        hashed.write_text(
            "".join(
                f"{name}=={version} {' '.join(f'--hash=sha256:{each}' for each in hashes)}\n"
                for name, (version, hashes) in wanted.items()
            )
        )
        done = subprocess.run(
            # -P, and in a folder of our own: no `pip.py` of where the user is stands in for pip.
            [sys.executable, "-P", "-m", "pip", "download", "--quiet",
             "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
             "--python-version", python, *platforms, "--dest", folder,
             "--require-hashes", "--requirement", str(hashed)],
            capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
        if done.returncode:
            raise _unfetched(done.stderr or done.stdout, told, python, processor)
        return {path.name: path.read_bytes() for path in Path(folder).glob("*.whl")}


def _known(name: str) -> tuple[str, list[str]]:
    """The version to fetch and what its wheels hash to: the one that is installed here, or, if that
    came out after this Tradewind, the newest before it."""
    versions: dict[str, dict[str, str]] = json.loads(_HASHES.read_bytes())[name]
    installed = metadata.version(name)
    version = installed if installed in versions else list(versions)[-1]
    return version, sorted(versions[version].values())


def _unfetched(said: str, told: str, python: str, processor: str) -> NotFound | SourceFailed:
    if "No module named pip" in said:
        return NotFound(
            f"{sys.executable} has no pip, which fetches what machines with Python {python} need",
            hint="uv pip install pip, or python -m ensurepip",
        )
    if "DO NOT MATCH THE HASHES" in said:
        return SourceFailed(
            f"the package index has other wheels of {told} for {python}, {processor} than were"
            " published: none was used",
            hint="see which index pip asks (pip config list); if it is your own, its files were"
            " changed",
        )
    lines = said.strip().splitlines() or ["it said nothing"]
    return SourceFailed(
        f"pip cannot fetch {told} for {python}, {processor}: {lines[-1]}",
        hint="check the network, or leave that target out",
    )
