"""Gradients made smaller before replicas exchange them: worth it where the network is slow.

| | sent | what is lost |
|---|---|---|
| fp16, bf16 | half | digits of each gradient |
| topk | `share` of the numbers, each with its place | the others, until later steps |
| powersgd | two narrow matrices for each | what a matrix of that rank cannot say, until later |

The last two remember what they left out and add it to the next gradients (error feedback). That
memory is each rank's own and part of the training's state: without it a resumed training would
lose gradients that were computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.base.errors import InvalidValue

KINDS = ("fp16", "bf16", "powersgd", "topk")
_OPTIONS: dict[str, dict[str, Any]] = {
    "fp16": {},
    "bf16": {},
    "topk": {"share": 0.01},
    "powersgd": {"rank": 1, "start": 10, "min_rate": 2.0},
}


def asked(compress: Any) -> tuple[str, dict[str, Any]] | None:
    """`"topk"`, or a table with options: `{"kind": "topk", "share": 0.05}`."""
    if compress is None:
        return None
    table = dict(compress) if isinstance(compress, Mapping) else {"kind": compress}
    kind = table.pop("kind", None)
    if kind not in KINDS:
        raise InvalidValue(f"compress is {kind!r}", hint=f"one of {', '.join(KINDS)}")
    options = dict(_OPTIONS[kind])
    for name, value in table.items():
        if name not in options:
            known = ", ".join(options) or "no options"
            raise InvalidValue(f"{kind} has no option {name!r}", hint=f"it has {known}")
        if not isinstance(value, (int, float)) or value <= 0:
            raise InvalidValue(f"{name} of {kind} is {value!r}, and must be a number above 0")
        options[name] = value
    if kind == "topk" and options["share"] > 1:
        raise InvalidValue(
            f"share of topk is {options['share']}: more than all", hint="0.01 sends 1 %"
        )
    return kind, options


def compress(model: Any, kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """Puts the hook into a DistributedDataParallel; gives what the session has to keep of it."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    if kind == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        return {}
    if kind == "bf16":
        # DistributedDataParallel lets PyTorch's own be used with NCCL only. A lambda: it reads the
        # annotations of hooks, and finds texts where they are postponed.
        model.register_comm_hook(None, lambda _, bucket: bf16_hook(bucket))
        return {}
    if kind == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            None,
            matrix_approximation_rank=int(options["rank"]),
            start_powerSGD_iter=int(options["start"]),
            min_compression_rate=options["min_rate"],
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return {"powersgd": state}
    feedback = TopK(options["share"])
    model.register_comm_hook(feedback, lambda state, bucket: topk_hook(state, bucket))
    return {"topk": feedback}


def bf16_hook(bucket: Any) -> Any:
    import torch
    import torch.distributed as dist

    flat = bucket.buffer()
    small = flat.to(torch.bfloat16).div_(dist.get_world_size())
    sent = dist.all_reduce(small, async_op=True).get_future()

    def back(future: Any) -> Any:
        return flat.copy_(future.value()[0])

    return sent.then(back)


class TopK:
    """What was left out so far, by bucket."""

    of_each_rank = True

    def __init__(self, share: float) -> None:
        self.share = share
        self.left_out: dict[int, Any] = {}

    def state_dict(self) -> dict[str, Any]:
        return {str(bucket): tensor for bucket, tensor in self.left_out.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.left_out = {int(bucket): tensor for bucket, tensor in state.items()}

    def begin_anew(self) -> str:
        """Where the state cannot be had."""
        self.left_out = {}
        return "topk begins without its error feedback"


def topk_hook(state: TopK, bucket: Any) -> Any:
    """Sends the largest of each bucket. What all ranks send is added up in the order of ranks, so
    that all come to the same to the bit."""
    import torch
    import torch.distributed as dist

    flat = bucket.buffer()
    whole = flat.clone()
    before = state.left_out.get(bucket.index())
    if before is not None and before.shape == whole.shape:
        whole += before.to(whole.device)
    many = max(1, int(whole.numel() * state.share))
    places = whole.abs().topk(many, sorted=False).indices
    values = whole[places]
    world = dist.get_world_size()
    all_places = [torch.empty_like(places) for _ in range(world)]
    all_values = [torch.empty_like(values) for _ in range(world)]
    dist.all_gather(all_places, places)
    dist.all_gather(all_values, values)
    whole[places] = 0
    state.left_out[bucket.index()] = whole
    flat.zero_()
    for theirs, numbers in zip(all_places, all_values, strict=True):
        flat.index_add_(0, theirs, numbers / world)
    done = torch.futures.Future()
    done.set_result(flat)
    return done
