"""The model of the newest whole checkpoint, as one file or a folder for Hugging Face.

Tensors are found by their names (`model.<name>`, sessions/state.py), whoever wrote which box of
them, and copied box by box, so nothing is ever whole in memory and PyTorch is not needed, but for a
`.pt`. Every piece is checked as it is read; a checkpoint that turns out damaged is passed over for
the one before it.

The index comes from a store that machines write, so it is believed as far as it fits the files:
types that are known, boxes that lie in their tensors, bytes that lie in their files.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, InvalidValue, MissingExtra, NoAccess, NotFound
from tradewind.torch.checkpoint import shelf
from tradewind.torch.checkpoint.files import Files
from tradewind.torch.checkpoint.pieces import PIECE
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.shelf import Found
from tradewind.torch.weights.safetensors import DTYPES, Writer, tensors

_ALL_LEGS = 999_999
MODEL, CONFIG = "model.safetensors", "config.json"


@dataclass(frozen=True, slots=True)
class Exported:
    path: Path
    step: int
    leg: int
    tensors: int
    bytes: int
    missing: tuple[str, ...] = ()
    """What is not there, of what a reader may look for."""


@dataclass(frozen=True, slots=True)
class _Box:
    file: str
    dtype: str
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    data: int
    """Where in the file its numbers begin."""


def of_run(store: Any, run_id: str) -> Place:
    return Place(None, store, f"runs/{run_id}/", leg=_ALL_LEGS)


def of_folder(folder: Path) -> Place:
    """Where a session without a run keeps its checkpoints."""
    return Place(folder, leg=_ALL_LEGS)


def is_folder(path: Path) -> bool:
    return (path / "checkpoints").is_dir()


def export(
    place: Place,
    to: Path,
    *,
    part: str = "model",
    force: bool = False,
    config: bytes | None = None,
    warn: Callable[[str], None] = lambda words: None,
) -> Exported:
    """To FILE.safetensors, FILE.pt (or .pth, .bin), or a folder. `config` is a config.json, for a
    folder, where the checkpoint has none."""
    kind = _kind(to)
    target = to / MODEL if kind == "folder" else to
    if target.exists() and not force:
        raise InvalidValue(f"{target} is there already", hint="--force overwrites it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoAccess(f"{target.parent} cannot be made: {error.strerror or error}") from None
    bad: set[str] = set()
    seen = False
    for found in shelf.sound(place, None, bad, warn):
        seen = True
        try:
            return _written(place, found, to, kind, part, config, force=force)
        except BadFile as error:
            warn(f"the checkpoint {found.key} is not used: {error.message}")
    if seen or bad:
        raise BadFile("no checkpoint is whole", hint="tradewind explain checkpoints")
    raise NotFound(
        "there is no checkpoint yet",
        hint="a session saves the first one after some minutes, or when the job is asked to save",
    )


def _kind(to: Path) -> str:
    if to.is_dir() or not to.suffix:
        return "folder"
    if to.suffix == ".safetensors":
        return "safetensors"
    if to.suffix in (".pt", ".pth", ".bin"):
        return "pt"
    raise InvalidValue(
        f"{to} has an ending that says nothing",
        hint="FILE.safetensors, FILE.pt, or a folder for Hugging Face's from_pretrained",
    )


def _written(
    place: Place,
    found: Found,
    to: Path,
    kind: str,
    part: str,
    config: bytes | None,
    *,
    force: bool,
) -> Exported:
    target = to / MODEL if kind == "folder" else to
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    with suppress(OSError):
        beside.unlink(missing_ok=True)
    try:
        with Files(place, found.manifest, direct=False) as files:
            entries = list(_entries(files))
            boxes = _of_part(entries, part)
            size = _copied(files, boxes, beside)
            told = _shared(files) if _has_torch() else None
        if kind == "pt":
            _saved_by_torch(beside, target)
        else:
            beside.replace(target)
    except OSError as error:
        raise NoAccess(f"{target} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    missing = _missing(told)
    if kind == "folder":
        missing += _with_config(to, told, part, config, force=force)
    return Exported(to, found.step, found.leg, len(boxes), size, tuple(missing))


# -- what there is -------------------------------------------------------------------------------


def _entries(files: Files) -> Iterator[tuple[str, str, _Box]]:
    """Kind, name and box of each; BadFile for an index that cannot be of these files."""
    try:
        for file in files.index()["files"]:
            whole = files.manifest.files[file["name"]][0]
            for kind, name, dtype, shape, offsets, sizes, _, _, data in file["entries"]:
                box = _Box(
                    file["name"], dtype, tuple(shape), tuple(offsets), tuple(sizes), data
                )  # fmt: skip
                _check(name, box, whole)
                yield kind, name, box
    except (*UNREADABLE, KeyError, TypeError, AttributeError):
        raise BadFile(f"the index of {files.manifest.name} is damaged") from None


def _check(name: str, box: _Box, whole: int) -> None:
    numbers = (*box.shape, *box.offsets, *box.sizes, box.data)
    if not isinstance(name, str) or not all(type(each) is int and each >= 0 for each in numbers):
        raise ValueError
    ends = zip(box.offsets, box.sizes, box.shape, strict=True)
    width = DTYPES.get(box.dtype, ("", 1))[1]
    if any(at + many > end for at, many, end in ends):
        raise ValueError
    if box.data + prod(box.sizes) * width > whole:
        raise ValueError


def _of_part(entries: Iterable[tuple[str, str, _Box]], part: str) -> dict[str, list[_Box]]:
    boxes: dict[str, list[_Box]] = defaultdict(list)
    others: set[str] = set()
    for kind, name, box in entries:
        if kind != "tensor":
            continue
        if name.startswith(f"{part}."):
            boxes[name.removeprefix(f"{part}.")].append(box)
        else:
            others.add(name.partition(".")[0])
    if not boxes:
        raise NotFound(
            f"the checkpoint has no tensors of {part!r}",
            hint=f"it has some of {', '.join(sorted(others))}: --part names one",
        )
    return boxes


# -- and its numbers -------------------------------------------------------------------------------


def _copied(files: Files, boxes: dict[str, list[_Box]], path: Path) -> int:
    """Boxes that several ranks have written are read once."""
    kinds = {name: (each[0].dtype, each[0].shape) for name, each in boxes.items()}
    once: dict[str, list[_Box]] = {}
    for name, each in boxes.items():
        once[name] = list({(box.offsets, box.sizes): box for box in each}.values())
        dtype, shape = kinds[name]
        if any((box.dtype, box.shape) != (dtype, shape) for box in each):
            raise BadFile(f"the index has {name} in two shapes")
        if sum(prod(box.sizes) for box in once[name]) != prod(shape):
            raise BadFile(f"only a part of {name} is in the checkpoint")
    writer = Writer(path, kinds)
    try:
        pieces = _Pieces(files)
        order = [(box.file, box.data, name, box) for name, found in once.items() for box in found]
        for _, _, name, box in sorted(order, key=lambda item: item[:3]):
            width = DTYPES[box.dtype][1]
            at = box.data
            for offset, many in _stretches(box):
                to = offset * width
                for data in pieces.bytes(box.file, at, many * width):
                    writer.put(name, to, data)
                    to += len(data)
                    at += len(data)
    finally:
        writer.close()
    return writer.size


def _stretches(box: _Box) -> Iterator[tuple[int, int]]:
    """Where in the tensor the box's numbers go, and how many of them lie together, in order."""
    inner = len(box.shape)
    while inner > 0 and box.sizes[inner - 1 :] == box.shape[inner - 1 :]:
        inner -= 1
    # Below `inner` everything is whole, so stretches are rows of dimension inner - 1.
    strides = [prod(box.shape[at + 1 :]) for at in range(len(box.shape))]
    if inner == 0:
        if many := prod(box.sizes):
            yield 0, many
        return
    row = box.sizes[inner - 1] * strides[inner - 1]
    outer = box.sizes[: inner - 1]
    for number in range(prod(outer) if row else 0):
        at, rest = box.offsets[inner - 1] * strides[inner - 1], number
        for dimension in reversed(range(inner - 1)):
            rest, index = divmod(rest, outer[dimension])
            at += (box.offsets[dimension] + index) * strides[dimension]
        yield at, row


class _Pieces:
    """Bytes of the checkpoint's files, of which only whole pieces can be checked."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._space = memoryview(bytearray(PIECE))
        self._held: tuple[str, int] | None = None

    def bytes(self, file: str, at: int, many: int) -> Iterator[memoryview]:
        end = at + many
        while at < end:
            piece = at // PIECE
            if self._held != (file, piece):
                self._held = None
                self._files.read(file, piece, self._space)
                self._held = file, piece
            upto = min(end, (piece + 1) * PIECE)
            yield self._space[at - piece * PIECE : upto - piece * PIECE]
            at = upto


# -- what else is known of it --------------------------------------------------------------------


def _has_torch() -> bool:
    from importlib.util import find_spec

    return find_spec("torch") is not None


def _shared(files: Files) -> dict[str, Any]:
    """What the session has said besides; empty for checkpoints of others."""
    from tradewind.torch import trees

    for kind, _, box in _entries(files):
        if kind == "shared":
            parts = _Pieces(files).bytes(box.file, box.data, prod(box.sizes))
            try:
                found = trees.loaded(b"".join(parts))
            except Exception:  # PyTorch has many errors, and the weights are there without it
                return {}
            return found if isinstance(found, dict) else {}
    return {}


def _missing(told: dict[str, Any] | None) -> list[str]:
    state = (told or {}).get("state")
    if isinstance(state, dict) and state.get("frozen") is False:
        return ["frozen parameters: the session was told frozen=False, and saves those trained"]
    return []


def _with_config(
    folder: Path, told: dict[str, Any] | None, part: str, config: bytes | None, *, force: bool
) -> list[str]:
    """Writes config.json, if anybody knows it; what is missing."""
    target, missing = folder / CONFIG, ["tokenizer files: they are not part of a training's state"]
    known = (told or {}).get("model_config")
    known = known.get(part) if isinstance(known, dict) else None
    data = known.encode() if isinstance(known, str) else config
    if data is not None:
        try:
            json.loads(data)
            if target.is_symlink() or (target.exists() and not force):
                if target.read_bytes() == data:
                    return missing
                return [f"a new {CONFIG}: another one is there (--force overwrites it)", *missing]
            target.write_bytes(data)
            return missing
        except UNREADABLE:
            pass
        except OSError as error:
            raise NoAccess(f"{target} cannot be written: {error.strerror or error}") from None
    if target.exists():
        return missing
    why = "the model has none that Hugging Face's to_dict gives, and no output is called so"
    if told is None:
        why = "PyTorch is needed to read what the session says of it, and is not installed"
    return [f"{CONFIG}: {why}", *missing]


def _saved_by_torch(made: Path, target: Path) -> None:
    if not _has_torch():
        raise MissingExtra(
            f"{target} needs PyTorch, which is not installed",
            hint=f"install it, or write {target.with_suffix('.safetensors')}",
        )
    import torch

    beside = made.with_suffix(".pt")
    try:
        torch.save(tensors(made), beside)
        shutil.move(beside, target)
    finally:
        beside.unlink(missing_ok=True)
