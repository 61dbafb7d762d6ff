"""TensorBoard's event files, written without TensorBoard: importing it takes seconds, and what it
writes for a number is forty bytes.

    record   length (8 bytes), its checksum (4), an Event, its checksum (4)
    Event    1 wall_time double, 2 step int64, 3 file_version string,
             5 summary { 1 value { 1 tag string, 2 simple_value float } },
             7 session_log { 1 status: START is 1 }

A training that goes on begins a new file with a session_log of the first step to come: readers then
forget whatever older files have from there on. That is how a rollback leaves no doubled rows.
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO

from tradewind.base import clock
from tradewind.torch.telemetry.sinks import Row

_POLYNOMIAL = 0x82F63B78  # CRC-32C, as TFRecord has it


class Events:
    """In `folder`; made when there is something to write."""

    name = "TensorBoard's event files"

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        """`first_step` is that of the first row to come, of a training that goes on."""
        self._folder, self._first = folder, first_step
        self._stream: BinaryIO | None = None

    def seek(self) -> None:
        pass

    def write(self, rows: Sequence[Row]) -> None:
        stream = self._stream or self._begin()
        for row in rows:
            step, values = int(row["step"]), (item for item in row.items() if item[0] != "step")
            summary = b"".join(_bytes(1, _bytes(1, name.encode()) + _float(2, value))
                               for name, value in values)  # fmt: skip
            stream.write(record(_event(clock.epoch(), step) + _bytes(5, summary)))
        stream.flush()

    def _begin(self) -> BinaryIO:
        self._folder.mkdir(parents=True, exist_ok=True)
        # By name in the order of time, as readers take them.
        now_s = clock.epoch()
        name = f"events.out.tfevents.{now_s:017.6f}.{platform.node()}.{os.getpid()}"
        self._stream = stream = (self._folder / name).open("ab")
        stream.write(record(_event(now_s, 0) + _bytes(3, b"brain.Event:2")))
        if self._first:
            stream.write(record(_event(now_s, self._first) + _bytes(7, _number(1, 1))))
        return stream

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _event(wall_s: float, step: int) -> bytes:
    return b"\x09" + struct.pack("<d", wall_s) + _number(2, step)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    try:
        return _varint(field << 3 | 5) + struct.pack("<f", value)
    except OverflowError:  # more than 32 bits can say
        return _varint(field << 3 | 5) + struct.pack("<f", float("inf") if value > 0 else -1e999)


@cache
def _table() -> tuple[int, ...]:
    made = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        made.append(value)
    return tuple(made)


def _checksum(data: bytes) -> bytes:
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
