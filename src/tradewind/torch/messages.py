"""Messages between ranks: typed values, in tensors of bytes.

PyTorch's own object collectives (`all_gather_object` and the like) unpickle what the other ranks
send, and a pickle runs whatever its sender wrote into it. Here a message is one type that both
sides know; anything else that arrives, whatever it is, raises BadMessage with the rank it is from,
on every rank that received it.

Each takes two exchanges: the lengths, then the bytes, padded to the longest.
"""

from __future__ import annotations

from typing import Any, TypeVar

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import TradewindError

MOST_BYTES = 256 << 20
"""Of one message: a rank cannot make the others reserve more than this."""

T = TypeVar("T")


class BadMessage(TradewindError):
    """Another rank sent what is not a message."""

    def __init__(self, rank: int | None, what: str) -> None:
        super().__init__(
            f"{'another rank' if rank is None else f'rank {rank}'} sent {what}",
            hint="do all machines run the same version of Tradewind and of the script? If so, one"
            " of them is damaged, or is not one of this run's",
        )


def gathered(value: T | None, kind: type[T], group: Any = None) -> list[T | None]:
    """What each rank of the group says, by rank; None for those who say nothing."""
    import torch
    import torch.distributed as dist

    device, ranks = _device(group), _ranks(group)
    data = b"" if value is None else encoded(value)
    length = torch.tensor([len(data)], dtype=torch.int64, device=device)
    lengths = [torch.empty_like(length) for _ in ranks]
    dist.all_gather(lengths, length, group=group)
    sizes = [_size(rank, each) for rank, each in zip(ranks, lengths, strict=True)]
    if not (longest := max(sizes)):
        return [None for _ in ranks]
    sent = _padded(data, longest, device)
    received = [torch.empty_like(sent) for _ in ranks]
    dist.all_gather(received, sent, group=group)
    return [
        decoded(_bytes(each[:size]), kind, rank) if size else None
        for rank, size, each in zip(ranks, sizes, received, strict=True)
    ]


def broadcast(value: T | None, kind: type[T], source: int, group: Any = None) -> T:
    """What the rank `source` (of all ranks, not of the group) says, on every rank of the group;
    `value` is its, and nobody else's is looked at."""
    import torch
    import torch.distributed as dist

    device, own = _device(group), dist.get_rank() == source
    data = encoded(value) if own else b""
    length = torch.tensor([len(data)], dtype=torch.int64, device=device)
    dist.broadcast(length, src=source, group=group)
    size = _size(source, length)
    if not size:
        raise BadMessage(source, "nothing")
    sent = _padded(data, size, device)
    dist.broadcast(sent, src=source, group=group)
    return decoded(_bytes(sent), kind, source)


def send(value: Any, to: int, group: Any = None) -> None:
    """To one other rank (of all ranks), which must wait for it in `received`."""
    import torch
    import torch.distributed as dist

    device, data = _device(group), encoded(value)
    _exchange(dist.isend, torch.tensor([len(data)], dtype=torch.int64, device=device), to, group)
    if len(data) <= MOST_BYTES:
        _exchange(dist.isend, _padded(data, len(data), device), to, group)
    _size(dist.get_rank(), torch.tensor([len(data)]))


def received(kind: type[T], source: int, group: Any = None) -> T:
    import torch
    import torch.distributed as dist

    device = _device(group)
    length = torch.zeros(1, dtype=torch.int64, device=device)
    _exchange(dist.irecv, length, source, group)
    arrived = _padded(b"", _size(source, length), device)
    _exchange(dist.irecv, arrived, source, group)
    return decoded(_bytes(arrived), kind, source)


def _exchange(act: Any, tensor: Any, other: int, group: Any) -> None:
    """As a batch: NCCL would open connections of their own for these two ranks otherwise."""
    import torch.distributed as dist

    for work in dist.batch_isend_irecv([dist.P2POp(act, tensor, other, group)]):
        work.wait()


def encoded(value: Any) -> bytes:
    from msgspec import msgpack  # a rank that is alone does without

    return msgpack.encode(value)


def decoded(data: bytes, kind: type[T], rank: int | None) -> T:
    """`rank` is whose it is, where that is known."""
    from msgspec import msgpack

    try:
        return msgpack.decode(data, type=kind)
    except UNREADABLE as error:
        short = str(error).split("\n")[0][:200]
        raise BadMessage(rank, f"{len(data):,} bytes that are not a message: {short}") from None


def _size(rank: int, length: Any) -> int:
    """Looked at by every rank, the sender too: whoever stopped before the collective would leave
    the others waiting in it."""
    size = int(length.item())
    if not 0 <= size <= MOST_BYTES:
        raise BadMessage(rank, f"a message of {size:,} bytes (the limit is {MOST_BYTES:,})")
    return size


def _padded(data: bytes, size: int, device: Any) -> Any:
    import torch

    whole = torch.zeros(size, dtype=torch.uint8)
    if data:
        whole[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return whole.to(device)


def _bytes(tensor: Any) -> bytes:
    return tensor.cpu().numpy().tobytes()  # type: ignore[no-any-return]


def _device(group: Any) -> Any:
    """Where the group's backend can send from: the CPU, or with NCCL alone this rank's GPU."""
    import torch
    import torch.distributed as dist

    return torch.device(dist.distributed_c10d._get_object_coll_device(group))


def _ranks(group: Any) -> list[int]:
    """Of the group's members, as all ranks are numbered."""
    import torch.distributed as dist

    return dist.get_process_group_ranks(group)  # type: ignore[no-any-return]
