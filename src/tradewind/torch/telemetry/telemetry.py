"""A training's own figures: counted by its loop, put together and told by a thread beside it.

The loop's part is `tally`, and `made` now and then. The thread looks where the main thread is (with
several ranks), marks each second what was counted, asks the GPU every five, writes the rank's file
every two, and passes rows on to whoever keeps metrics. It never makes the training wait.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from msgspec import json

from tradewind.base import clock
from tradewind.model.figures import Figures, Gpu
from tradewind.telemetry.gpus import Gpus
from tradewind.torch.surroundings import Surroundings
from tradewind.torch.telemetry import stacks
from tradewind.torch.telemetry.comms import Comms
from tradewind.torch.telemetry.processor import Processor
from tradewind.torch.telemetry.sinks import Sinks
from tradewind.torch.telemetry.tally import Tally
from tradewind.torch.telemetry.window import Mark, Window

_MARK_S, _WRITE_S, _GPU_S, _ROW_S = 1.0, 2.0, 5.0, 10.0


class Newest(Protocol):
    """What the session's own teller knows."""

    step: int
    saved: int
    read: dict[str, float]


class Telemetry:
    def __init__(
        self,
        around: Surroundings,
        folder: Path,
        *,
        modules: Iterable[Any],
        device: Any,
        workers: int | None,
        sinks: Sinks,
        teller: Newest,
    ) -> None:
        import torch

        self.tally, self.sinks = Tally(), sinks
        self._file = folder / f"{around.rank}.json"
        self._window, self._teller = Window(), teller
        self._began_s = clock.stopwatch()
        self._device = str(device)
        self._comms = Comms(modules, self._device)
        self._processor = Processor(threading.get_native_id())
        self._stacks = stacks.Stacks(threading.get_ident()) if around.world > 1 else None
        self._gpus = _gpus(device)
        self._gpu: Gpu | None = None
        self._always = {
            "rank": around.rank,
            "world": around.world,
            "local": int(os.environ.get("LOCAL_WORLD_SIZE") or around.world),
            "host": platform.node()[:64],
            "pid": os.getpid(),
            "device": self._device,
            "threads": torch.get_num_threads(),
            "cores": self._processor.cores,
            "workers": workers,
        }
        self._row_s = self._began_s - _ROW_S + _WRITE_S
        self._gpu_s = self._write_s = 0.0
        self._over = threading.Event()
        self._mark()
        self._thread = threading.Thread(target=self._go, name="tradewind-telemetry", daemon=True)
        self._thread.start()

    # -- by the loop -------------------------------------------------------------------------------

    def look(self, now_s: float) -> None:
        """Between two steps, a few times a second: what only the main thread can find out."""
        self._comms.look(now_s)
        self.sinks.seek(now_s)

    # -- by the thread -----------------------------------------------------------------------------

    def _go(self) -> None:
        every_s = stacks.EVERY_S if self._stacks is not None else _MARK_S
        mark_s = 0.0
        while not self._over.wait(every_s):
            with suppress(Exception):  # whatever a driver or a file system does: the next may work
                if self._stacks is not None:
                    self._stacks.look()
                now_s = clock.stopwatch()
                if now_s >= mark_s:
                    mark_s = now_s + _MARK_S
                    self._each_second(now_s)
        self._mark()
        self._write(over=True)
        self.sinks.close()

    def _each_second(self, now_s: float) -> None:
        self._mark()
        if self._gpus is not None and now_s >= self._gpu_s:
            self._gpu_s = now_s + _GPU_S
            self._gpu = next(iter(self._gpus.read()), None)
        if now_s >= self._write_s:
            self._write_s = now_s + _WRITE_S
            self._write()
        self.sinks.flush()

    def _mark(self) -> None:
        tally, seen = self.tally, self._stacks
        self._window.mark(
            Mark(
                clock.stopwatch(),
                tally.steps,
                tally.data_s or 0.0,
                tally.saving_s,
                self._processor.busy_s(),
                self._processor.crowded_s(),
                seen.looks if seen else 0,
                seen.talking if seen else 0,
            )
        )

    def figures(self, *, over: bool = False) -> Figures:
        counted, read = self._window.figures(self.tally, self._comms.wait_s), self._teller.read
        return Figures(
            **self._always,
            **counted,
            over=over,
            up_s=round(clock.stopwatch() - self._began_s, 1),
            step=self._teller.step,
            saved=self._teller.saved,
            loss=read.get("loss"),
            grad_norm=read.get("grad_norm"),
            memory=self._processor.memory(),
            peak=_peak(self._device),
            gpu=self._gpu,
        )

    def _write(self, *, over: bool = False) -> None:
        with suppress(OSError):  # a full disk: the next word may get through
            self._file.parent.mkdir(parents=True, exist_ok=True)
            beside = self._file.with_name(f".{self._file.name}.{os.getpid()}")
            beside.write_bytes(json.encode(self.figures(over=over)))
            beside.replace(self._file)

    def row(self, *, now: bool = False) -> dict[str, float]:
        """For the metrics, every ten seconds; empty in between."""
        at_s = clock.stopwatch()
        if not now and at_s - self._row_s < _ROW_S:
            return {}
        self._row_s = at_s
        return row_of(self.figures())

    def close(self, within_s: float) -> None:
        """Its last words may take so long; whoever keeps metrics may hang."""
        self._over.set()
        self._thread.join(timeout=within_s)


_IN_ROWS = ("step_s", "tokens_rate", "samples_rate", "data", "comm", "saving", "cpu", "crowded")


def row_of(figures: Figures) -> dict[str, float]:
    """What of them is worth keeping, under `telemetry/`."""
    row = {name: getattr(figures, name) for name in _IN_ROWS}
    row["memory"], row["peak"] = float(figures.memory), float(figures.peak) or None
    if (gpu := figures.gpu) is not None:
        row |= {
            "gpu_busy": gpu.busy,
            "gpu_memory_busy": gpu.memory_busy,
            "gpu_memory_used": float(gpu.memory_used),
            "gpu_power_w": gpu.power_w,
            "gpu_clock_mhz": gpu.clock_mhz,
            "gpu_slowed": float(bool(gpu.slowed)),
        }
    return {f"telemetry/{name}": value for name, value in row.items() if value is not None}


def _gpus(device: Any) -> Gpus | None:
    if getattr(device, "type", "") != "cuda":
        return None
    import torch

    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return Gpus.here(str(uuid)) if uuid is not None else None


def _peak(device: str) -> int:
    if not device.startswith("cuda"):
        return 0
    import torch

    # As torch.cuda.max_memory_allocated, which puts all other figures in order first.
    return int(torch.cuda.memory_stats_as_nested_dict(device)["allocated_bytes"]["all"]["peak"])
