"""What the drivers' own tools tell of a host's GPUs: NVIDIA's nvidia-smi, and AMD's rocm-smi, which
does not tell whose processes compute on which GPU: there the memory in use must do.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

FREE = "free"
NVIDIA, AMD = "nvidia", "amd"
_VISIBLE = {NVIDIA: "CUDA_VISIBLE_DEVICES", AMD: "ROCR_VISIBLE_DEVICES"}
_FIELDS = "index,uuid,name,memory.total,memory.used,mig.mode.current"
_ROCM = "rocm-smi --showproductname --showuniqueid --showmeminfo vram --json".split()
_TIMEOUT_S = 30
_UUID = re.compile(r"[A-Za-z0-9-]{4,80}")
_MIB = 1 << 20
_MISSING = "is not there"
_NONE = "neither nvidia-smi nor rocm-smi is there: it has no driver of GPUs"


@dataclass(frozen=True)
class Gpu:
    index: int
    uuid: str
    """By which leases know it."""
    name: str
    memory_mb: int
    used_mb: int
    mig: bool = False
    pids: tuple[int, ...] = ()
    state: str = FREE
    who: str = ""
    """In words: who uses it, or why it cannot be used."""
    vendor: str = NVIDIA
    called: str = ""
    """What a job's libraries are told, if not its uuid."""

    def told(self) -> dict[str, Any]:
        return asdict(self)


class NoGpus(Exception):
    """No driver's own tool is there, or none answers."""


def found() -> list[Gpu]:
    """Raises NoGpus with what each tool says, where none shows any."""
    gpus: list[Gpu] = []
    said: list[str] = []
    for look in (_nvidia, _amd):
        try:
            gpus += look()
        except NoGpus as error:
            said.append(str(error))
    if not gpus and said:
        # A tool that is there and fails says more than one that is missing.
        said.sort(key=lambda words: words.endswith(_MISSING))
        raise NoGpus(said[0] if not said[0].endswith(_MISSING) else _NONE)
    return gpus


def visible(gpus: Iterable[Gpu]) -> dict[str, str]:
    """Variables by which a job sees these and no others."""
    named: dict[str, list[str]] = {}
    for each in gpus:
        named.setdefault(_VISIBLE[each.vendor], []).append(each.called or each.uuid)
    return {variable: ",".join(calls) for variable, calls in named.items()}


def _nvidia() -> list[Gpu]:
    more = "--format=csv,noheader,nounits"
    gpus = _asked(["nvidia-smi", f"--query-gpu={_FIELDS}", more])
    return parsed(gpus, _asked(["nvidia-smi", "--query-compute-apps=gpu_uuid,pid", more]))


def _amd() -> list[Gpu]:
    return parsed_rocm(_asked(_ROCM))


def _asked(command: list[str]) -> str:
    tool = command[0]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise NoGpus(f"{tool} {_MISSING}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoGpus(f"{tool} does not answer: {error}") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or ["it said nothing"]
        raise NoGpus(f"{tool}: {said[-1]}")
    return done.stdout


def parsed(gpus: str, apps: str) -> list[Gpu]:
    """What nvidia-smi has answered, to both questions. A line that is none is passed over."""
    pids: dict[str, list[int]] = {}
    for line in apps.splitlines():
        uuid, _, pid = (part.strip() for part in line.partition(","))
        if pid.isdecimal():
            pids.setdefault(uuid, []).append(int(pid))
    found = []
    for line in gpus.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) < 5 or not parts[0].isdecimal() or not _UUID.fullmatch(parts[1]):
            continue
        found.append(
            Gpu(
                index=int(parts[0]),
                uuid=parts[1],
                name=parts[2],
                memory_mb=_number(parts[3]),
                used_mb=_number(parts[4]),
                mig=parts[5:6] == ["Enabled"],
                pids=tuple(pids.get(parts[1], ())),
            )
        )
    return found


def parsed_rocm(text: str) -> list[Gpu]:
    """What rocm-smi has answered: JSON behind warnings, and with keys whose case has changed from
    release to release."""
    try:
        told = json.loads(text[max(text.find("{"), 0) :])
    except ValueError:
        raise NoGpus("rocm-smi answers what is no JSON") from None
    found = []
    for card, facts in told.items() if isinstance(told, dict) else ():
        number = card.removeprefix("card")
        if not number.isdecimal() or not isinstance(facts, dict):
            continue
        known = {str(name).lower(): str(value) for name, value in facts.items()}
        unique = re.fullmatch(r"0x([0-9a-f]{4,32})", known.get("unique id", "").lower())
        series = known.get("card series", "")
        name = series if series not in ("", "N/A") else known.get("card model", "AMD GPU")
        found.append(
            Gpu(
                index=int(number),
                uuid=f"GPU-{unique[1]}" if unique else f"amd-card{number}",
                name=name,
                memory_mb=_number(known.get("vram total memory (b)", "")) // _MIB,
                used_mb=_number(known.get("vram total used memory (b)", "")) // _MIB,
                vendor=AMD,
                called="" if unique else number,
            )
        )
    return sorted(found, key=lambda each: each.index)


def _number(text: str) -> int:
    """0 for `[N/A]` and its like."""
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0
