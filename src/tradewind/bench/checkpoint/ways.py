"""The ways to save that are compared: PyTorch's own, each as its documentation has it, and ours."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tradewind.base import clock
from tradewind.torch.checkpoint import Checkpoints, Place

Tensors = dict[str, Any]


class Way:
    """Saves are numbered; what is before the newest need not be kept."""

    def __init__(self, folder: Path, device: Any) -> None:
        self.folder, self.device = folder, device

    def prepare(self, tensors: Tensors) -> None:
        """What a user does once, before training."""

    def ready(self) -> bool:
        return True

    def save(self, number: int, tensors: Tensors) -> None:
        raise NotImplementedError

    def gate(self) -> None:
        """Before the weights change."""

    def durable(self) -> bool:
        """Whether the newest is. Does not wait."""
        return True

    def settle(self) -> None:
        """Waits for what it still does with the disk: who restores has only just begun."""

    def restore(self, tensors: Tensors) -> None:
        """The newest, in place."""
        raise NotImplementedError

    def facts(self) -> list[dict[str, float]]:
        """Of the newest, where it tells them."""
        return []

    def end(self, number: int, tensors: Tensors) -> float | None:
        """Seconds for a last save that is waited for, and whatever follows; None: not asked."""
        return None

    def close(self) -> None:
        pass

    def path(self, number: int) -> Path:
        """Where the newest goes; the others make room."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for each in self.folder.iterdir():
            if each.name != str(number - 1):
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        self._newest = self.folder / str(number)
        return self._newest


class TorchSave(Way):
    def save(self, number: int, tensors: Tensors) -> None:
        import os

        import torch

        with self.path(number).open("wb") as stream:
            torch.save(tensors, stream)
            stream.flush()
            os.fsync(stream.fileno())

    def restore(self, tensors: Tensors) -> None:
        import torch

        loaded = torch.load(self._newest, map_location=self.device, weights_only=True)
        _fill(tensors, loaded)


class DcpSave(Way):
    def save(self, number: int, tensors: Tensors) -> None:
        import torch.distributed.checkpoint as dcp

        dcp.save(tensors, checkpoint_id=self.path(number), **_alone(dcp.save))

    def restore(self, tensors: Tensors) -> None:
        import torch.distributed.checkpoint as dcp

        dcp.load(tensors, checkpoint_id=self._newest, **_alone(dcp.load))


class DcpAsync(DcpSave):
    _upload: Any = None

    def save(self, number: int, tensors: Tensors) -> None:
        import torch.distributed.checkpoint as dcp

        self._upload = dcp.async_save(
            tensors, checkpoint_id=self.path(number), **_alone(dcp.async_save)
        )

    def durable(self) -> bool:
        if not self._upload.done():
            return False
        self._upload.result()
        return True


class DcpPinned(DcpAsync):
    """With the stager that is meant to be the fastest, and as many threads as help."""

    _staged: Any = None
    _stager: Any = None

    def prepare(self, tensors: Tensors) -> None:
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        gpu = self.device.type == "cuda"
        self._stager = DefaultStager(
            StagingOptions(
                use_pinned_memory=gpu,
                use_shared_memory=False,
                use_async_staging=True,
                use_non_blocking_copy=gpu,
            )
        )
        # PyTorch 2.11 closes this part of it after the first save, and the second then fails.
        self._stager._state_dict_stager.close = lambda: None

    def save(self, number: int, tensors: Tensors) -> None:
        import torch.distributed.checkpoint as dcp

        writer = dcp.FileSystemWriter(self.path(number), thread_count=8)
        answer = dcp.async_save(
            tensors, storage_writer=writer, async_stager=self._stager, **_alone(dcp.async_save)
        )
        self._staged = answer.staging_completion
        self._upload = answer.upload_completion

    def gate(self) -> None:
        if self._staged is not None:
            self._staged.result()

    def close(self) -> None:
        if self._stager is not None:
            self._stager.close()


class Ours(Way):
    def __init__(self, folder: Path, device: Any) -> None:
        super().__init__(folder, device)
        self._checkpoints = Checkpoints(Place(folder), keep=2, device=device)
        self._number = -1

    def prepare(self, tensors: Tensors) -> None:
        self._checkpoints.prepare(tensors)

    def ready(self) -> bool:
        return self._checkpoints.ready()

    def save(self, number: int, tensors: Tensors) -> None:
        self._number = number
        assert self._checkpoints.save(number, tensors), "it was skipped"

    def gate(self) -> None:
        self._checkpoints.gate()

    def durable(self) -> bool:
        under_way = self._checkpoints.saving()
        saved = self._checkpoints.poll()
        found = saved is not None and saved.step == self._number
        assert found or under_way, "it could not be saved"
        return found

    def settle(self) -> None:
        self._checkpoints.tidy(100.0)

    def restore(self, tensors: Tensors) -> None:
        found = self._checkpoints.newest()
        assert found is not None
        assert self._checkpoints.read(found, tensors).found.step == self._number

    def end(self, number: int, tensors: Tensors) -> float | None:
        began = clock.stopwatch()
        assert self._checkpoints.save(number, tensors, wait=True), "it could not be saved"
        self._checkpoints.close()
        return clock.stopwatch() - began

    def close(self) -> None:
        self._checkpoints.close()

    def facts(self) -> list[dict[str, float]]:
        saved = self._checkpoints.poll()
        assert saved is not None
        return [{"copy_s": saved.stage_s, "write_s": saved.write_s, "bytes": saved.bytes}]


def _alone(function: Any) -> dict[str, Any]:
    """For one process; not every release of PyTorch lets everything be told that."""
    import inspect

    return {"no_dist": True} if "no_dist" in inspect.signature(function).parameters else {}


def _fill(tensors: Tensors, loaded: Tensors) -> None:
    import torch

    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(loaded[name])


WAYS: dict[str, tuple[Callable[[Path, Any], Way], str, int]] = {
    # name → how it is made, what it is, and how many saves
    "ours": (Ours, "tradewind", 3),
    "dcp-pinned": (DcpPinned, "DCP async_save, pinned stager", 2),
    "dcp-async": (DcpAsync, "DCP async_save", 2),
    "dcp": (DcpSave, "DCP save", 1),
    "torch": (TorchSave, "torch.save", 1),
}
