"""What a training tells: its progress to the supervisor, its metrics to a file, and in a run those
to the supervisor too, with the checkpoints that it has taken.

Nothing here makes the device wait. Values of a GPU stay the tensors they are until another thread
reads them, some steps later; it also writes the files. What it does for a step costs the training
too, as only one thread at a time runs Python: a number that is there already is read at once, and
rows are encoded together.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, json

from tradewind.base import clock

if TYPE_CHECKING:
    from tradewind.torch.checkpoint.job import Saved

_RATE_S = 20.0
_TELL_S = 1.0
_OPEN_S = 5.0
"""How long a row waits for more of its step, where no next step comes."""
_LONGEST = 1 << 20
_KEPT = 1000
_MOST_UNSAVED = 200_000
_OF_ALL = ("loss", "grad_norm")
"""What telemetry wants to know of every rank."""

Row = dict[str, float]
_encoder = json.Encoder()


class Teller:
    """`progress`, `metrics` and `sent` are files, or None: only rank 0 writes them. `metrics` is a
    line for each step that counts; `sent` is taken away as it grows, so there a step that is made
    again has a line again, and each says when it was written."""

    def __init__(
        self, progress: Path | None, metrics: Path | None, sent: Path | None = None
    ) -> None:
        self._progress, self._metrics, self._sent = progress, metrics, sent
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque()
        self._open: tuple[int, dict[str, Any]] | None = None
        """Of the newest step, of which more may be told."""
        self._opened_at = 0.0
        self.rows: deque[Row] = deque(maxlen=_KEPT)
        """The newest, read."""
        self.step, self.saved = 0, 0
        self.newest: dict[str, Any] = {}
        """What was told of the last step, not read yet."""
        self.read: Row = {}
        """What was told of the last step that is read: reading another is a copy from the device,
        for which a training waits whose steps are short."""
        self.more: Callable[[], Row] = dict
        """What else goes into the newest row, now and then."""
        self.pass_on: Callable[[list[Row]], None] = lambda rows: None
        self._past: deque[tuple[float, int]] = deque()
        self._told: tuple[int, int] | None = None
        self._told_at = -math.inf
        self._written = 0
        self._telling = threading.Lock()
        self._kept: deque[Row] = deque()
        self._unsaved: deque[tuple[int, bytes]] = deque(maxlen=_MOST_UNSAVED)
        """Lines that no checkpoint has beside it yet."""
        if sent is not None:
            _end_line(sent)

    def resumed(self, step: int, beside: bytes = b"") -> None:
        """Steps after it are made again: what was told of them goes. `beside` are the lines that
        the checkpoint has with it: on another machine they may be in no file yet."""
        self.step = self.saved = self._written = step
        if self._metrics is None:
            return
        with suppress(OSError):  # checkpoints are what matters, and they say so themselves
            there = self._metrics.read_bytes() if self._metrics.exists() else b""
            kept = _until(there, step)
            last = kept[-1][0] if kept else -1.0
            missing = [row for row in _until(beside, step) if row[0] > last]
            if there or missing:
                self._metrics.parent.mkdir(parents=True, exist_ok=True)
                _replace(self._metrics, b"".join(line for _, line in [*kept, *missing]))
            if missing and self._sent is not None:
                with self._sent.open("ab") as stream:
                    stream.writelines(line for _, line in missing)

    def durable(self, step: int) -> bytes:
        """Before the checkpoint of that step comes to exist, by the thread that saves it: what was
        told until then is on the disk, and goes with it."""
        with self._telling:
            self._write_metrics(sync=True)
            found = []
            while self._unsaved and self._unsaved[0][0] <= step:
                found.append(self._unsaved.popleft()[1])
        return b"".join(found)

    def made(self, step: int, values: dict[str, Any]) -> None:
        self.step = step
        if values:
            if self._metrics is None:
                values = {name: values[name] for name in _OF_ALL if name in values}
            self.newest = values = held(values)
            opened = self._open
            if opened is not None and opened[0] == step:
                self.newest = values = {**opened[1], **values}
            elif opened is not None:
                self._waiting.append(opened)
            if self._metrics is not None:
                if "step" in values:
                    values["logged_step"] = values.pop("step")
                self._open = step, values

    def keep(self, saved: Saved, ranks: int) -> None:
        """A checkpoint that is complete; told once."""
        if saved.step <= self.saved:
            return
        self.saved = saved.step
        row = {"checkpoint": saved.step, "took_s": round(saved.total_s, 3)}
        if ranks == 1:  # of the others' parts it does not know
            row["bytes"] = saved.bytes
        self._kept.append(row)

    def rate(self) -> float | None:
        """Steps a second, of late."""
        if len(self._past) < 2:
            return None
        (first_s, first), (last_s, last) = self._past[0], self._past[-1]
        made = (last - first) / (last_s - first_s) if last_s > first_s else 0.0
        return made if made > 0 else None

    def tell(self, *, now: bool = False) -> None:
        """By another thread, a few times a second; at the end by the main one."""
        with self._telling:
            self._tell(now=now)

    def _tell(self, *, now: bool) -> None:
        at_s = clock.monotonic()
        if not now and at_s - self._told_at < _TELL_S:
            return
        self._told_at = at_s
        self._past.append((at_s, self.step))
        while len(self._past) > 2 and at_s - self._past[0][0] > _RATE_S:
            self._past.popleft()
        if self._metrics is None and self.newest:
            self.read = _all_read([(self.step, self.newest)])[-1]
        self._write_metrics(now=now)
        if self._progress is not None and self._told != (self.step, self.saved):
            told = {"step": self.step, "saved": self.saved, "rate": self.rate()}
            with suppress(OSError):  # a full disk: the next word may get through
                _replace(self._progress, json.encode(told))
                self._told = (self.step, self.saved)

    def _write_metrics(self, *, sync: bool = False, now: bool = False) -> None:
        if self._metrics is None:
            return
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        at_s = clock.monotonic()
        if self._open is None or waiting:
            self._opened_at = at_s
        if self._open is not None and (sync or now or at_s - self._opened_at > _OPEN_S):
            opened, self._open = self._open, None
            waiting.append(opened)
        rows = _all_read(waiting)
        if rows:
            self.read = dict(rows[-1])
        more = self.more()
        if more and rows:
            rows[-1].update(more)
        elif more and self._open is None and self.step > self._written:
            rows = [{"step": self.step, **more}]
        if rows:
            self.pass_on(rows)
            rows = self._with_last(rows)
            self._written = int(rows[-1]["step"])
            self.rows.extend(rows)
            with suppress(OSError):
                self._metrics.parent.mkdir(parents=True, exist_ok=True)
                _append(self._metrics, rows)
            self._unsaved.extend((int(row["step"]), _encoder.encode(row) + b"\n") for row in rows)
        if sync:
            with suppress(OSError), self._metrics.open("rb") as stream:
                os.fsync(stream.fileno())
        kept = [self._kept.popleft() for _ in range(len(self._kept))]
        if (rows or kept) and self._sent is not None:
            at_s = round(clock.now().timestamp(), 3)
            with suppress(OSError):
                _append(self._sent, [{**row, "at_s": at_s} for row in [*rows, *kept]])

    def _with_last(self, rows: list[Row]) -> list[Row]:
        """A step has one row, also where some of it is told after it was written."""
        step = int(rows[0]["step"])
        if step > self._written:
            return rows
        assert self._metrics is not None
        with suppress(OSError):
            rows = [{**_taken_back(self._metrics, step), **rows[0]}, *rows[1:]]
        if self.rows and self.rows[-1]["step"] == step:
            self.rows.pop()
        if self._unsaved and self._unsaved[-1][0] == step:
            self._unsaved.pop()
        return rows


def _taken_back(path: Path, step: int) -> Row:
    """The last line of the file, if it is of that step."""
    if not path.exists():
        return {}
    with path.open("r+b") as stream:
        start = max(0, stream.seek(0, os.SEEK_END) - _LONGEST)
        stream.seek(start)
        *_, last = stream.read().splitlines(keepends=True) or [b""]
        with suppress(ValueError):
            row: Row = json.decode(last)
            if row.get("step") == step:
                stream.seek(-len(last), os.SEEK_END)
                stream.truncate()
                return row
    return {}


def _append(path: Path, rows: list[Row]) -> None:
    with path.open("ab") as stream:
        stream.write(_encoder.encode_lines(rows))


def _end_line(path: Path) -> None:
    """One that was killed may have left half a line."""
    with suppress(OSError), path.open("r+b") as stream:
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            stream.write(b"" if stream.read(1) == b"\n" else b"\n")


def _until(data: bytes, step: float) -> list[tuple[float, bytes]]:
    """Lines of steps up to that, with their step: the newest of each."""
    found: dict[float, bytes] = {}
    for line in data.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            if (of := _steps.decode(line).step) <= step:
                found[of] = line + b"\n"
    return list(found.items())


class _Step(Struct):
    step: float


_steps = json.Decoder(_Step)


def held(values: dict[str, Any]) -> dict[str, Any]:
    """Values as they are now. What is in the computer's memory is read; what is on a device stays
    as it is, and is copied there if others may add to it."""
    made = {}
    for name, value in values.items():
        if hasattr(value, "detach"):
            if value.is_cpu and value.numel() == 1 and not hasattr(value, "_local_tensor"):
                value = value.item()
            elif value.grad_fn is None:
                value = value.detach().clone()
            else:
                value = value.detach()
        made[name] = value
    return made


def _all_read(waiting: list[tuple[int, dict[str, Any]]]) -> list[Row]:
    try:
        return _read(waiting)
    except Exception:  # something among them cannot be read: then each for itself
        return [_readable(step, values) for step, values in waiting]


def _readable(step: int, values: dict[str, Any]) -> Row:
    row: Row = {"step": step}
    for name, value in values.items():
        with suppress(Exception):
            row |= _read([(step, {name: value})])[0]
    return row


def _read(waiting: list[tuple[int, dict[str, Any]]]) -> list[Row]:
    """All tensors of a kind in one copy from the device."""
    import torch

    rows: list[Row] = [{"step": step} for step, _ in waiting]
    apart: dict[Any, list[tuple[int, str, Any]]] = {}
    for number, (_, values) in enumerate(waiting):
        for name, value in values.items():
            if type(value) is float:
                rows[number][name] = value
            elif hasattr(value, "numel"):
                if value.numel() == 1:
                    kind = (value.device, value.dtype, value.ndim)
                    apart.setdefault(kind, []).append((number, name, value))
            else:
                with suppress(TypeError, ValueError, OverflowError):
                    rows[number][name] = float(value)
    for found in apart.values():
        read = torch.stack([value for *_, value in found]).flatten().tolist()
        for (number, name, _), value in zip(found, read, strict=True):
            rows[number][name] = float(value)
    return rows


def _replace(path: Path, data: bytes) -> None:
    """Whole or not at all. Not made durable: it is of use to those who live now."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    beside.write_bytes(data)
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
