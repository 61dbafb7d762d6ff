"""Out of memory is answered by smaller micro-batches, more of them: the batch stays what it was.

The step is made again as if it had been so from the start: gradients are cleared, random numbers
and the model's buffers put back. What was learnt holds for later steps; it is in checkpoints, and
in a file beside them for a training that could not go on by itself.

Ranks have to do the same. Replicas need each other only when gradients are averaged, so where
memory may be short for the first time (the first two steps, and two after a change) they first
compute all of it, then ask whether all could, and only then average. Elsewhere, and where ranks
need each other in every layer, one that is out of memory would leave the others waiting: there the
training ends, and the next start, such as a supervisor's or torchrun's, begins with smaller
micro-batches.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from tradewind.base.errors import TradewindError
from tradewind.torch.feeds import seeding

_WATCHED = 2  # steps: optimizers make their state in the first
_FILE = "micro_batch.json"
_WORDS = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory")


def is_short(error: BaseException) -> bool:
    """Whether it says that memory is short, on a GPU or in the computer."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    words = str(error).lower()
    return isinstance(error, RuntimeError) and any(each in words for each in _WORDS)


class Before:
    """What a forward pass changes besides gradients, as it was."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._numbers = seeding.captured()
        self._buffers = [(each, each.detach().clone()) for each in model.buffers()]

    def put_back(self) -> None:
        import torch

        for parameter in self._model.parameters():
            parameter.grad = None
        with torch.no_grad():
            for buffer, was in self._buffers:
                buffer.copy_(was)
        seeding.restored(self._numbers)


class Memory:
    """How many samples go through the model at once: `micro`; None: all of a batch."""

    def __init__(self, micro: int | None, folder: Path, world: int) -> None:
        self.micro = micro
        self._file = folder / _FILE
        self._world = world
        self._left = _WATCHED
        self._tried = 0  # of a step that does not fit: the first that was tried
        self.said = ""
        """What is to be told to the user, once."""

    # -- as the session keeps it -------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {"micro_batch": self.micro}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._at_most(state["micro_batch"])

    def begin_anew(self) -> str:
        return ""

    def recall(self) -> None:
        """What an earlier start left in the file. On every rank."""
        import torch
        import torch.distributed as dist

        known = 1 << 60
        with suppress(OSError, ValueError, TypeError, KeyError):
            known = max(1, int(json.loads(self._file.read_text())["micro_batch"]))
        if self._world > 1:
            word = torch.tensor([known], dtype=torch.int64, device=where())
            dist.all_reduce(word, op=dist.ReduceOp.MIN)
            known = int(word.item())
        if known < 1 << 60:
            self._at_most(known)

    def _at_most(self, known: int | None) -> None:
        if known is not None and (self.micro is None or known < self.micro):
            self.micro = known

    # -- in a step ---------------------------------------------------------------------------------

    def watches(self) -> bool:
        """Whether memory may turn out to be short in this step; the same on all ranks."""
        return self._world == 1 or self._left > 0

    def fitted(self) -> None:
        self._tried = 0
        self._left = max(0, self._left - 1)

    def smaller(self, many: int, error: str) -> None:
        """Half of what went through at once, of a batch of so many samples."""
        now = min(self.micro or many, many)
        if now <= 1:
            raise TradewindError(
                f"one sample at a time does not fit into memory: {error}",
                hint="a layout that needs less: recompute: full, sharding: zero3, or tp 2; or a"
                " shorter sequence",
            )
        self._tried = self._tried or now
        self.micro = (now + 1) // 2
        self._left = _WATCHED
        self.said = (
            f"out of memory with {self._tried} samples at once: continuing with {self.micro}, and"
            " as many in a step as before"
        )

    def end(self, many: int, error: str) -> TradewindError:
        """What it cannot answer while it runs is remembered for the next start."""
        now = min(self.micro or many, many)
        self.smaller(many, error)
        kept = self.keep()
        return TradewindError(
            f"out of memory with {now} samples at once, in a step in which ranks wait for each"
            f" other: {error}",
            hint=f"start it again: it continues with {self.micro} at once"
            + (f" (kept in {self._file})" if kept else f"; say micro_batch={self.micro}")
            + "; a supervisor does so by itself, and torchrun with --max-restarts",
        )

    def keep(self) -> bool:
        """For a start that finds no checkpoint of it."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            beside = self._file.with_name(f".{_FILE}.new")
            beside.write_text(json.dumps({"micro_batch": self.micro}))
            beside.replace(self._file)
        except OSError:
            return False
        return True


def freed() -> None:
    """What the failed step has left. Its traceback must be gone: it holds the activations."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def anyone(word: bool, world: int) -> bool:
    """Whether it is true of any rank; the same answer everywhere."""
    import torch
    import torch.distributed as dist

    if world == 1:
        return word
    asked = torch.tensor([float(word)], device=where())
    dist.all_reduce(asked, op=dist.ReduceOp.MAX)
    return bool(asked.item())


def where() -> Any:
    import torch
    import torch.distributed as dist

    cuda = dist.is_initialized() and dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")
