"""How the stages of a pipeline tell each other what they will send: shapes and types of tensors.

PyTorch's stage sends its own objects for that, once, before the first batch, and the neighbour
unpickles them. This one sends the same as typed messages. PyTorch 2.13 has two functions to put in
their place; where there are none, as in 2.11, its own way is used.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from tradewind.base.errors import InvalidValue
from tradewind.torch import messages

Count = Annotated[int, Meta(ge=0)]


class TensorShape(Struct, frozen=True):
    shape: tuple[Count, ...]
    stride: tuple[Count, ...]
    dtype: str
    requires_grad: bool


class Shapes(Struct, frozen=True):
    backward: bool
    """Of gradients, for the stage before; else of outputs, for the stage after."""
    tensors: tuple[TensorShape | None, ...]
    """None: an input that has no gradient."""


def stage(module: Any, at: int, stages: int, device: Any, group: Any) -> Any:
    """PyTorch's PipelineStage with messages of ours."""
    from torch.distributed.pipelining import PipelineStage, _utils

    if not hasattr(PipelineStage, "_recv_meta"):
        return PipelineStage(module, at, stages, device, group=group)

    class Stage(PipelineStage):  # type: ignore[misc]
        def _send_meta(self, meta: Any, dst_stage: int) -> None:
            backward = isinstance(meta, _utils._StageBackwardMeta)
            metas = meta.backward_metas if backward else meta.forward_metas
            said = Shapes(backward, tuple(map(_said, metas)))
            messages.send(said, self._resolve_peer_global_rank(dst_stage), self.group)

        def _recv_meta(self, src_stage: int) -> Any:
            source = self._resolve_peer_global_rank(src_stage)
            said = messages.received(Shapes, source, self.group)
            metas = tuple(_meta(source, each) for each in said.tensors)
            if said.backward:
                return _utils._StageBackwardMeta(metas)
            return _utils._StageForwardMeta(metas)

    return Stage(module, at, stages, device, group=group)


def _said(meta: Any) -> TensorShape | None:
    from torch.distributed.pipelining import _utils

    if meta is None:
        return None
    if type(meta) is not _utils._TensorMeta:
        raise InvalidValue(
            "a stage of the pipeline passes on tensors that are split over ranks (DTensor)",
            hint="cut the model where its tensors are whole: between its blocks",
        )
    dtype = str(meta.dtype).removeprefix("torch.")
    return TensorShape(tuple(meta.shape), tuple(meta.stride), dtype, meta.requires_grad)


def _meta(source: int, said: TensorShape | None) -> Any:
    import torch
    from torch.distributed.pipelining import _utils

    if said is None:
        return None
    dtype = getattr(torch, said.dtype, None)
    if not isinstance(dtype, torch.dtype) or len(said.shape) != len(said.stride):
        raise messages.BadMessage(source, f"the shape of no tensor: {said}")
    return _utils._TensorMeta(torch.Size(said.shape), said.stride, dtype, said.requires_grad)
