"""What the stages of a pipeline tell each other before a save, so that the checkpoint says it once,
as of one model that was never cut.

Only names and counts are read as they come. State of people's own making (`get_extra_state`, an
optimizer's values) is packed as a checkpoint packs it, and unpacked in the same restricted way.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.torch import trees
from tradewind.torch.messages import BadMessage
from tradewind.torch.ranks import Ranks

Packed = bytes
"""A dict by name, as `trees.packed` makes it."""


class StageOptimizer(Struct, frozen=True):
    state: Packed
    params: list[list[str]]
    """Names, by group."""


class StageState(Struct, frozen=True):
    models: dict[str, Packed]
    optimizers: dict[str, StageOptimizer]
    gradients: int
    trouble: str = ""
    """Why it cannot be saved. Sent to all ranks, so that all of them stop and none waits."""
    hint: str | None = None


def merged(rest: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    """`rest` of this rank, with what the stages have of their own put together. The checkpoint gets
    rank 0's."""
    whole = dict(rest)
    whole["models"] = {key: {} for key in rest["models"]}
    whole["optimizers"] = {
        key: {
            **optimizer,
            "state": {},
            "groups": [{**g, "params": []} for g in optimizer["groups"]],
        }
        for key, optimizer in rest["optimizers"].items()
    }
    for rank, said in ranks.gathered(_said(rest), StageState):
        if said.trouble:
            raise InvalidValue(f"rank {rank}: {said.trouble}", hint=said.hint)
        if said.models.keys() != whole["models"].keys():
            raise _differs(rank, "models", said.models, whole["models"])
        if said.optimizers.keys() != whole["optimizers"].keys():
            raise _differs(rank, "optimizers", said.optimizers, whole["optimizers"])
        for key, besides in said.models.items():
            whole["models"][key] |= _unpacked(rank, besides)
        for key, optimizer in said.optimizers.items():
            into = whole["optimizers"][key]
            into["state"] |= _unpacked(rank, optimizer.state)
            if len(into["groups"]) != len(optimizer.params):
                many = f"{len(optimizer.params)} groups, not {len(into['groups'])}"
                raise BadMessage(rank, f"the state of {key} with {many}")
            for group, names in zip(into["groups"], optimizer.params, strict=True):
                group["params"] += names
        whole["gradients"] = max(whole["gradients"], said.gradients)
    return whole


def _said(rest: dict[str, Any]) -> StageState:
    try:
        return StageState(
            {key: trees.packed(besides, key) for key, besides in rest["models"].items()},
            {
                key: StageOptimizer(
                    trees.packed(optimizer["state"], key),
                    [group["params"] for group in optimizer["groups"]],
                )
                for key, optimizer in rest["optimizers"].items()
            },
            rest["gradients"],
        )
    except InvalidValue as error:
        return StageState({}, {}, 0, error.message, error.hint)


def _unpacked(rank: int, data: Packed) -> dict[str, Any]:
    try:
        found = trees.loaded(data)
    except Exception as error:  # torch.load has no one error for what it refuses
        short = str(error).split("\n")[0][:200]
        raise BadMessage(rank, f"state that cannot be read: {short}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise BadMessage(rank, f"a {type(found).__name__} instead of state by name")
    return found


def _differs(rank: int, what: str, said: Any, own: Any) -> BadMessage:
    return BadMessage(
        rank, f"state of the {what} {sorted(said)}, where this rank has {sorted(own)}"
    )
