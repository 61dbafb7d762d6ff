"""`tw.loader`: an ordinary DataLoader whose settings fit the dataset and the machine.

It measures for about two seconds, says in one line what it chose and why, and remembers it beside
the checkpoints: a training that goes on on such a machine does not measure again. A stream keeps
its number of workers whatever the machine, because its place in the epoch belongs to them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import InvalidValue, NotFound, TradewindError
from tradewind.model import bounds
from tradewind.torch.data import choice, measuring, words
from tradewind.torch.data.choice import Choice
from tradewind.torch.data.machine import Machine, machine

_CHOSEN = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")
_FOLDER = "checkpoints"


def loader(
    dataset: Any,
    batch_size: int = 1,
    *,
    folder: str | Path | None = None,
    step_s: float | None = None,
    quiet: bool = False,
    **options: Any,
) -> Any:
    """A torch.utils.data.DataLoader of `dataset`, with `num_workers`, `prefetch_factor`,
    `pin_memory` and `persistent_workers` chosen by measuring. Whatever of these is given is kept,
    and so are all other options of DataLoader.

    `step_s`: how long a training step takes, where it is known; then no more workers are started
    than keep up with it. `folder`: where the session keeps checkpoints, if it was told."""
    from torch.utils.data import DataLoader, IterableDataset

    _check(dataset, batch_size, step_s, options)
    stream = isinstance(dataset, IterableDataset)
    fixed = "num_workers" in options or options.get("batch_sampler") is not None
    if fixed:
        found = {} if options.get("batch_sampler") is not None else _fixed(options)
    else:
        here = machine(gpu=_gpu())
        memory = _Memory(folder)
        key = _key(dataset, batch_size, here, stream)
        known = memory.get(key)
        if known is None:
            known = _measured(dataset, batch_size, here, step_s, options, stream)
            memory.put(key, known)
            told = f"loader: {_settings(known)}: {known.why}"
        else:
            told = f"loader: {_settings(known)}, as chosen before"
        if not quiet:
            _say(told)
        found = {name: getattr(known, name) for name in _CHOSEN}
    with measuring.unwarned():
        if options.get("batch_sampler") is not None:
            return DataLoader(dataset, **options)
        return DataLoader(dataset, batch_size, **{**found, **options})


def _check(dataset: Any, batch_size: Any, step_s: Any, options: dict[str, Any]) -> None:
    from torch.utils.data import DataLoader

    if isinstance(dataset, DataLoader):
        raise InvalidValue("this is a DataLoader already", hint="give its dataset")
    if not hasattr(dataset, "__getitem__") and not hasattr(dataset, "__iter__"):
        raise InvalidValue(
            f"a {type(dataset).__name__} is no dataset",
            hint="it needs __getitem__ and __len__, or __iter__ as an IterableDataset",
        )
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InvalidValue(f"a batch cannot have {batch_size!r} samples", hint="batch_size=32")
    if step_s is not None and not step_s > 0:
        raise InvalidValue(f"a step cannot take {step_s!r} s", hint="step_s=0.25, or leave it out")
    if hasattr(dataset, "__len__") and not len(dataset):
        raise InvalidValue("the dataset has no samples")


def _fixed(options: dict[str, Any]) -> dict[str, Any]:
    """Where the script says how many workers, that is what it gets."""
    workers = options["num_workers"]
    return {"pin_memory": _gpu(), **({"persistent_workers": True} if workers else {})}


def _measured(
    dataset: Any,
    batch_size: int,
    here: Machine,
    step_s: float | None,
    options: dict[str, Any],
    stream: bool,
) -> Choice:
    from torch.utils.data import default_collate

    began = clock.stopwatch()
    collate = options.get("collate_fn") or default_collate
    trials: list[choice.Trial] = []
    if stream:
        before = dataset.state_dict() if hasattr(dataset, "state_dict") else None
        found = measuring.probe(_streamed(dataset, batch_size, collate))
        if before is not None:
            dataset.load_state_dict(before)
    else:
        batch = min(batch_size, len(dataset))
        samples = measuring.Samples(dataset, batch)
        found = measuring.probe(measuring.made(dataset, samples, collate))
    if found is None:
        return Choice(0, None, here.gpu, False, "the dataset gave nothing to measure")
    given: dict[str, Any] = {
        name: options[name]
        for name in ("collate_fn", "worker_init_fn", "multiprocessing_context")
        if name in options
    }
    slow = stream or found.batch_s > measuring.SLOWEST_S or "multiprocessing_context" in given
    step = step_s if step_s and step_s <= measuring.LONGEST_STEP_S else 0.0
    numbers = choice.candidates(found, here, step_s)
    for workers in [0, *numbers] if numbers and step and not slow else numbers:
        if slow:
            trials.append(choice.expected(workers, found, here))
            continue
        trials.append(measuring.trial(dataset, workers, samples, given, step))
        enough = step_s is not None and trials[-1].every_s < 1.1 * step_s and workers
        tried = [trial.every_s for trial in trials if trial.workers]
        in_vain = len(tried) > 1 and tried[-1] > 0.95 * tried[-2]
        if enough or in_vain or clock.stopwatch() - began > measuring.TRIALS_S:
            break
    return choice.chosen(found, trials, here, step_s, clock.stopwatch() - began)


def _streamed(dataset: Any, batch: int, collate: Any) -> Any:
    iterator = iter(dataset)
    while True:
        some = [sample for _, sample in zip(range(batch), iterator, strict=False)]
        if not some:
            return
        yield collate(some)


# -- what was chosen before ------------------------------------------------------------------------


class _Memory:
    """`loader.json` in the folder of checkpoints, under `tradewind run` in the run's own."""

    def __init__(self, folder: str | Path | None) -> None:
        from tradewind.torch.checkpoint.place import Place

        place = Place.of_run(folder or _FOLDER) or Place(folder or _FOLDER)
        self._store: Any = place.store
        self._name = place.checkpoints.removesuffix("checkpoints/") + "loader.json"

    def _read(self) -> dict[str, Any]:
        try:
            said = json.loads(self._store.get(self._name, most=bounds.RECORD))
            return said if isinstance(said, dict) else {}
        except (NotFound, *UNREADABLE):
            return {}
        except TradewindError as error:
            _say(f"loader: what was chosen before cannot be read: {error.message}")
            return {}

    def get(self, key: str) -> Choice | None:
        try:
            return msgspec.convert(self._read()[key], Choice)
        except (KeyError, msgspec.ValidationError):
            return None

    def put(self, key: str, chosen: Choice) -> None:
        """By one rank: they all choose alike, and later all read the same."""
        if os.environ.get("RANK", "0") not in ("", "0"):
            return
        said = {**self._read(), key: msgspec.to_builtins(chosen)}
        try:
            self._store.replace(self._name, json.dumps(said, indent=1).encode())
        except TradewindError as error:
            _say(f"loader: the choice is not remembered: {error.message}")


def _key(dataset: Any, batch_size: int, here: Machine, stream: bool) -> str:
    kind = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
    if stream:
        return f"{kind}, batches of {batch_size}"
    gpu = ", gpu" if here.gpu else ""
    return f"{kind} of {len(dataset)}, batches of {batch_size}, {here.cores:.3g} cores{gpu}"


def _settings(chosen: Choice) -> str:
    if not chosen.num_workers:
        return "no workers"
    workers = "1 worker" if chosen.num_workers == 1 else f"{chosen.num_workers} workers"
    pinned = ", pinned memory" if chosen.pin_memory else ""
    return f"{workers}, {chosen.prefetch_factor} batches ahead each{pinned}"


def _gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _say(text: str) -> None:
    if os.environ.get("RANK", "0") in ("", "0"):
        words.say(text)
