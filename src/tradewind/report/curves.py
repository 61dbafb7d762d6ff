"""What a job has measured, leg after leg, as one curve.

A leg that goes on from a checkpoint makes some steps again. What was measured of them before is
forgotten then, so that a curve has each step once and shows no seam. However many rows there are,
only so many buckets are held: where there would be more, each takes twice as many steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from msgspec.json import decode

from tradewind.base.decoding import UNREADABLE
from tradewind.report.figures import Bucket, Curve, Kept, Point

MOST = 1000
"""Buckets of a curve: about as many as a chart has dots side by side."""
MOST_CURVES = 24
_POINTS = 200
"""Of a leg's course."""
_OWN = ("step", "at_s", "checkpoint")
_LATEST_S = 250_000_000_000


class _Making:
    def __init__(self, name: str) -> None:
        self.name = name
        self.width = 1
        self.buckets: list[list[float]] = []  # number, last step, low, sum, high, rows
        self.last = 0.0

    def take(self, step: float, value: float) -> None:
        number = step // self.width
        if self.buckets and self.buckets[-1][0] >= number:
            while self.buckets and self.buckets[-1][0] > number:
                self.buckets.pop()
            if self.buckets and self.buckets[-1][0] == number and step <= self.buckets[-1][1]:
                self.buckets.pop()
        if self.buckets and self.buckets[-1][0] == number:
            bucket = self.buckets[-1]
            bucket[1], bucket[2] = step, min(bucket[2], value)
            bucket[3], bucket[4] = bucket[3] + value, max(bucket[4], value)
            bucket[5] += 1
        else:
            self.buckets.append([number, step, value, value, value, 1])
            if len(self.buckets) > 2 * MOST:
                self._halve()
        self.last = value

    def _halve(self) -> None:
        self.width *= 2
        joined: list[list[float]] = []
        for bucket in self.buckets:
            bucket[0] = bucket[1] // self.width
            if joined and joined[-1][0] == bucket[0]:
                into = joined[-1]
                into[1], into[2] = bucket[1], min(into[2], bucket[2])
                into[3], into[4] = into[3] + bucket[3], max(into[4], bucket[4])
                into[5] += bucket[5]
            else:
                joined.append(bucket)
        self.buckets = joined

    def made(self) -> Curve:
        while len(self.buckets) > MOST:
            self._halve()
        return Curve(
            name=self.name,
            rows=int(sum(bucket[5] for bucket in self.buckets)),
            width=self.width,
            buckets=tuple(
                Bucket(step, _short(low), _short(total / rows), _short(high))
                for _, step, low, total, high, rows in self.buckets
            ),
            last=self.last,
            best=min(bucket[2] for bucket in self.buckets),
        )


class Curves:
    """Lines go in as they were written, leg after leg."""

    def __init__(self) -> None:
        self._making: dict[str, _Making] = {}
        self._course: dict[int, list[Point]] = {}
        self._every: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self.first: dict[int, datetime] = {}
        """When each leg's first step was told."""
        self._newest: dict[int, float] = {}
        self.again: dict[int, float] = {}
        """Steps that a leg has made again on the machines it had: its job was restarted there."""
        self.kept: list[Kept] = []
        self.unread = 0
        """Lines that are no such thing: torn by a kill, or a job's own."""

    def take(self, leg: int, lines: Iterable[bytes]) -> None:
        for line in lines:
            if not line.strip():
                continue
            row = _decoded(line)
            if row is None:
                self.unread += 1
            elif "step" in row:
                self._row(leg, row)
            else:
                self._checkpoint(leg, row)

    def _row(self, leg: int, row: dict[str, Any]) -> None:
        step = _number(row["step"])
        if step is None or step < 0:
            self.unread += 1
            return
        if step < (newest := self._newest.get(leg, step)):
            self.again[leg] = self.again.get(leg, 0.0) + newest - step + 1
        self._newest[leg] = step
        at = _moment(row.get("at_s"))
        if at is not None:
            self._point(leg, Point(at, step))
        for name, value in row.items():
            if name in _OWN:
                continue
            number = _number(value)
            if number is None:
                continue
            if name not in self._making:
                if len(self._making) == MOST_CURVES:
                    continue
                self._making[name] = _Making(name)
            self._making[name].take(step, number)

    def _point(self, leg: int, point: Point) -> None:
        points = self._course.setdefault(leg, [])
        self.first.setdefault(leg, point.at)
        number = self._seen[leg] = self._seen.get(leg, 0) + 1
        every = self._every.setdefault(leg, 1)
        if points and number % every:
            points[-1] = point  # the newest is always there
            return
        points.append(point)
        if len(points) > 2 * _POINTS:
            self._course[leg] = [*points[:-1:2], points[-1]]
            self._every[leg] = 2 * every

    def _checkpoint(self, leg: int, row: dict[str, Any]) -> None:
        step = _number(row.get("checkpoint"))
        if step is None:
            self.unread += 1
            return
        size, took = _number(row.get("bytes")), _number(row.get("took_s"))
        self.kept.append(
            Kept(
                step=step,
                leg=leg,
                at=_moment(row.get("at_s")),
                bytes=None if size is None else int(size),
                took_s=took,
            )
        )

    def curves(self) -> tuple[Curve, ...]:
        """The loss first, whatever it is called; then as they came."""
        made = [making.made() for making in self._making.values() if making.buckets]
        return tuple(sorted(made, key=lambda curve: _rank(curve.name)))

    def course(self, leg: int) -> list[Point]:
        return self._course.get(leg, [])


def _rank(name: str) -> int:
    low = name.lower()
    return 0 if low == "loss" else 1 if "loss" in low else 2


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        row = decode(line)
    except UNREADABLE:
        try:
            row = json.loads(line)  # which knows NaN and Infinity, as Python writes them
        except UNREADABLE:
            return None
    return row if isinstance(row, dict) else None


def _number(value: Any) -> float | None:
    if type(value) is float:
        return value if isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _moment(value: Any) -> datetime | None:
    at_s = _number(value)
    if at_s is None or not 0 < at_s < _LATEST_S:
        return None
    return datetime.fromtimestamp(at_s, UTC)


def _short(value: float) -> float:
    return float(f"{value:.6g}")
