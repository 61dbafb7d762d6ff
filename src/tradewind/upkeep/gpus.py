"""The GPUs of this computer, their driver, and whether PyTorch and the driver suit each other.

CUDA of one major version runs on every driver of that major version or a newer one: 12 from 525,
13 from 580 (NVIDIA's "minor version compatibility"). PyTorch's own version is read from its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from tradewind.model.finding import MISSING, OK, WARNING, Finding

_LEAST_DRIVER = {12: "525", 13: "580"}
_INDEX = {12: "cu126", 13: "cu130"}
_WHEELS = "https://download.pytorch.org/whl/"
_DISPLAY, _NVIDIA = "0x03", "0x10de"


class Driver(NamedTuple):
    version: str
    cuda: tuple[int, int]
    """The newest that it runs."""
    gpus: tuple[str, ...]


class Torch(NamedTuple):
    version: str
    cuda: tuple[int, int] | None
    """None: built for processors, or for other makers' GPUs."""
    hip: bool = False


def gpu_checks() -> Iterator[Finding]:
    yield from judged(driver(), torch(), on_the_bus())


def judged(driver: Driver | None, torch: Torch | None, on_the_bus: int) -> Iterator[Finding]:
    if driver is None:
        yield _silent(on_the_bus)
        return
    many = len(driver.gpus)
    kinds = ", ".join(sorted(set(driver.gpus)))
    cuda = "{}.{}".format(*driver.cuda)
    yield Finding(
        about="gpus",
        level=OK,
        what=f"{many} of NVIDIA ({kinds}), driver {driver.version}, which runs CUDA {cuda}",
        measured={"gpus": list(driver.gpus), "driver": driver.version, "cuda": cuda},
    )
    if torch and not torch.hip:
        yield _suits(driver, torch)


def _silent(on_the_bus: int) -> Finding:
    if not on_the_bus:
        return Finding(
            about="gpus",
            level=MISSING,
            what="there is no NVIDIA GPU",
            why="training on a GPU of this computer",
            todo="tradewind plan says which to rent",
            measured={"gpus": []},
        )
    are = "is 1 GPU" if on_the_bus == 1 else f"are {on_the_bus} GPUs"
    return Finding(
        about="gpus",
        level=WARNING,
        what=f"there {are} of NVIDIA, and no driver answers",
        why="neither PyTorch nor Tradewind can use them",
        todo="nvidia-smi says why; install NVIDIA's driver, and start containers with --gpus all",
        measured={"gpus": None, "on_the_bus": on_the_bus},
    )


def _suits(driver: Driver, torch: Torch) -> Finding:
    measured = {"torch": torch.version, "cuda": torch.cuda and "{}.{}".format(*torch.cuda)}
    known = [index for major, index in _INDEX.items() if major <= driver.cuda[0]]
    fix = f"pip install --force-reinstall torch --index-url {_WHEELS}{known[-1]}" if known else ""
    if torch.cuda is None:
        return Finding(
            about="gpus",
            level=WARNING,
            what=f"torch {torch.version} is built without CUDA",
            why="it trains on the CPU, though there are GPUs",
            todo=fix or "install a newer NVIDIA driver first",
            measured=measured,
        )
    wants = "{}.{}".format(*torch.cuda)
    if torch.cuda[0] <= driver.cuda[0]:
        what = f"torch {torch.version} is built for CUDA {wants}, which the driver runs"
        return Finding(about="gpus", level=OK, what=what, measured=measured)
    least = _LEAST_DRIVER.get(torch.cuda[0])
    newer = f"install driver {least} or newer" if least else "install a newer driver"
    return Finding(
        about="gpus",
        level=WARNING,
        what=f"torch {torch.version} is built for CUDA {wants}, and driver {driver.version} runs"
        f" {'{}.{}'.format(*driver.cuda)} at most",
        why="PyTorch finds no GPU then",
        todo=f"{newer}; or: {fix}" if fix else newer,
        measured=measured,
    )


def driver() -> Driver | None:
    try:
        import pynvml as nvml
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
        cuda = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        return Driver(
            _text(nvml.nvmlSystemGetDriverVersion()),
            (cuda // 1000, cuda % 1000 // 10),
            tuple(_text(nvml.nvmlDeviceGetName(handle)) for handle in handles),
        )
    except nvml.NVMLError:
        return None


def _text(told: str | bytes) -> str:
    """Older bindings tell bytes."""
    return told.decode() if isinstance(told, bytes) else told


def torch() -> Torch | None:
    """By its files alone."""
    try:
        found = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        return None
    text = ""
    with suppress(OSError):
        text = Path(str(found.locate_file("torch/version.py"))).read_text("utf-8")
    return read(found.version, text)


def read(version: str, text: str) -> Torch:
    cuda = re.search(r"^cuda\b.*=\s*['\"](\d+)\.(\d+)", text, re.MULTILINE)
    hip = re.search(r"^hip\b.*=\s*['\"]", text, re.MULTILINE)
    return Torch(version, (int(cuda[1]), int(cuda[2])) if cuda else None, hip is not None)


def on_the_bus(devices: Path = Path("/sys/bus/pci/devices")) -> int:
    """How many there are, whether or not anything can use them."""
    found = 0
    for vendor in devices.glob("*/vendor"):
        with suppress(OSError):
            if vendor.read_text().strip() == _NVIDIA:
                found += vendor.with_name("class").read_text().startswith(_DISPLAY)
    return found
