"""A loader that Accelerate has prepared, as it was before: what it does (sharing batches out to
ranks, shuffling from a seed, going one batch ahead) is what a feed does in its own way."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import InvalidValue

_KEPT = (
    "num_workers",
    "collate_fn",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "prefetch_factor",
)


def plain(prepared: Any, world: int, rank: int) -> Any:
    """An ordinary DataLoader of the same data."""
    from torch.utils.data import DataLoader, IterableDataset

    base = getattr(prepared, "base_dataloader", prepared)
    if hasattr(base, "state_dict"):
        return base  # torchdata's, which goes on by itself
    if not isinstance(base, DataLoader):
        raise InvalidValue(
            f"the training data is a {type(base).__name__}",
            hint="give a torch.utils.data.DataLoader",
        )
    kept = {name: getattr(base, name) for name in _KEPT}
    if not base.num_workers:
        kept["prefetch_factor"] = None
    if isinstance(base.dataset, IterableDataset):
        return DataLoader(
            _shard(prepared, base, world, rank),
            batch_size=base.batch_size,
            drop_last=base.drop_last,
            **kept,
        )
    batches = base.sampler if _of_batches(base.sampler) else base.batch_sampler
    if batches is None:
        return DataLoader(base.dataset, batch_size=None, sampler=_sampler(base.sampler), **kept)
    return DataLoader(base.dataset, batch_sampler=_batches(batches, world), **kept)


def on_device(prepared: Any) -> Any:
    """What puts a batch where Accelerate would have put it; None where it would not."""
    device = getattr(prepared, "device", None)
    if device is None:
        return None
    from accelerate.utils import send_to_device

    waits = not getattr(prepared, "_non_blocking", False)
    return lambda batch: send_to_device(batch, device, non_blocking=not waits)


def _of_batches(sampler: Any) -> bool:
    from torch.utils.data import BatchSampler

    return isinstance(sampler, BatchSampler)


def _batches(given: Any, world: int) -> Any:
    """The sampler of batches for all ranks together, batches as large as one rank's."""
    from torch.utils.data import BatchSampler

    parts = 1
    while type(given).__name__ == "BatchSamplerShard":
        parts = world if given.split_batches else 1
        given = given.batch_sampler
    if type(given) is BatchSampler:
        return BatchSampler(_sampler(given.sampler), given.batch_size // parts, given.drop_last)
    if parts > 1:
        raise InvalidValue(
            f"split_batches is not supported with a {type(given).__name__}",
            hint="leave split_batches out, and make batches as large as one process's",
        )
    return given


def _sampler(given: Any) -> Any:
    """Accelerate's shuffling, as PyTorch's: the feed has a seed of its own."""
    from torch.utils.data import RandomSampler

    if type(given).__name__ != "SeedableRandomSampler":
        return given
    return RandomSampler(
        given.data_source, replacement=given.replacement, num_samples=given._num_samples
    )


def _shard(prepared: Any, base: Any, world: int, rank: int) -> Any:
    """A stream of this rank's samples: the first rank would else read it for all."""
    from accelerate.data_loader import DataLoaderDispatcher, IterableDatasetShard

    if world == 1 or isinstance(base.dataset, IterableDatasetShard):
        return base.dataset
    if not issubclass(type(prepared), DataLoaderDispatcher):
        return base.dataset  # the script, or the dataset, has shared it out
    return IterableDatasetShard(
        base.dataset,
        batch_size=base.batch_size,
        drop_last=base.drop_last,
        num_processes=world,
        process_index=rank,
    )
