"""What a training tells: its progress to the supervisor, its metrics to a file.

Nothing here makes the device wait. Values stay the tensors they are until another thread reads
them, some steps later; it also writes the files.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tradewind import clock

_RATE_S = 20.0
_TELL_S = 1.0
_KEPT = 1000


class Teller:
    """`progress` and `metrics` are files, or None: only rank 0 writes them."""

    def __init__(self, progress: Path | None, metrics: Path | None) -> None:
        self._progress, self._metrics = progress, metrics
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self.rows: deque[dict[str, float]] = deque(maxlen=_KEPT)
        """The newest, read."""
        self.step, self.saved = 0, 0
        self._past: deque[tuple[float, int]] = deque()
        self._told: tuple[int, int] | None = None
        self._told_at = -math.inf

    def resumed(self, step: int) -> None:
        """Steps after it are made again: what was told of them goes."""
        self.step = self.saved = step
        if self._metrics is None or not self._metrics.exists():
            return
        kept = []
        with suppress(OSError):  # checkpoints are what matters, and they say so themselves
            for line in self._metrics.read_text(errors="replace").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    if json.loads(line)["step"] <= step:
                        kept.append(line + "\n")
            _replace(self._metrics, "".join(kept))

    def made(self, step: int, values: dict[str, Any]) -> None:
        self.step = step
        if values:
            with self._lock:
                self._waiting.append((step, values))

    def rate(self) -> float | None:
        """Steps a second, of late."""
        if len(self._past) < 2:
            return None
        (first_s, first), (last_s, last) = self._past[0], self._past[-1]
        made = (last - first) / (last_s - first_s) if last_s > first_s else 0.0
        return made if made > 0 else None

    def tell(self, *, now: bool = False) -> None:
        """By another thread, a few times a second."""
        at_s = clock.monotonic()
        if not now and at_s - self._told_at < _TELL_S:
            return
        self._told_at = at_s
        self._past.append((at_s, self.step))
        while len(self._past) > 2 and at_s - self._past[0][0] > _RATE_S:
            self._past.popleft()
        self._write_metrics()
        if self._progress is not None and self._told != (self.step, self.saved):
            told = {"step": self.step, "saved": self.saved, "rate": self.rate()}
            with suppress(OSError):  # a full disk: the next word may get through
                _replace(self._progress, json.dumps(told))
                self._told = (self.step, self.saved)

    def _write_metrics(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        try:
            rows = _read(waiting)
        except Exception:  # something among them cannot be read: then each for itself
            rows = [row for each in waiting for row in _readable(each)]
        self.rows.extend(rows)
        if rows and self._metrics is not None:
            with suppress(OSError):
                self._metrics.parent.mkdir(parents=True, exist_ok=True)
                with self._metrics.open("a") as stream:
                    stream.writelines(json.dumps(row) + "\n" for row in rows)


def held(values: dict[str, Any]) -> dict[str, Any]:
    """Values as they are now. What was computed stays as it is; a tensor that others may add to is
    copied, on its device."""
    made = {}
    for name, value in values.items():
        if hasattr(value, "detach"):
            value = value.detach().clone() if value.grad_fn is None else value.detach()
        made[name] = value
    return made


def _readable(one: tuple[int, dict[str, Any]]) -> list[dict[str, float]]:
    step, values = one
    row: dict[str, float] = {"step": step}
    for name, value in values.items():
        with suppress(Exception):
            row |= _read([(step, {name: value})])[0]
    return [row]


def _read(waiting: list[tuple[int, dict[str, Any]]]) -> list[dict[str, float]]:
    """All tensors in one copy from the device."""
    import torch

    rows: list[dict[str, float]] = [{"step": step} for step, _ in waiting]
    apart: dict[Any, list[tuple[int, str, Any]]] = {}
    for number, (_, values) in enumerate(waiting):
        for name, value in values.items():
            if hasattr(value, "numel"):
                if value.numel() == 1:
                    apart.setdefault(value.device, []).append((number, name, value))
            else:
                with suppress(TypeError, ValueError, OverflowError):
                    rows[number][name] = float(value)
    for found in apart.values():
        read = torch.stack([value.reshape(()).double() for *_, value in found]).tolist()
        for (number, name, _), value in zip(found, read, strict=True):
            rows[number][name] = value
    return rows


def _replace(path: Path, text: str) -> None:
    """Whole or not at all. Not made durable: it is of use to those who live now."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    beside.write_text(text)
    beside.replace(path)


class Background:
    """One thread that does small things a few times a second."""

    EVERY_S = 0.2

    def __init__(self, *work: Callable[[], None]) -> None:
        self._work = work
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go, name="tradewind", daemon=True)
        self._thread.start()

    def _go(self) -> None:
        """Whatever goes wrong: who looks for notices must not be gone."""
        while not self._over.wait(self.EVERY_S):
            for each in self._work:
                with suppress(Exception):
                    each()

    def close(self) -> None:
        self._over.set()
        self._thread.join(timeout=5)
