"""A checkpoint back into what the script gave: the other way of state.py.

What was saved is asked first, without tensors; then there is a place for each of them, in the model
that exists and in optimizers that have made no step yet, and they are read straight there.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.torch import trees
from tradewind.torch.feeds import seeding
from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.sessions import buckets, named, powersgd, switches
from tradewind.torch.sessions.state import Parts, bare
from tradewind.torch.trees import loaded

_RANK = 6


class Back(Struct):
    """What a checkpoint said, besides what is in its place again already."""

    step: int
    key: str
    name: str
    """Of the folder with its files."""
    world: int
    shared: dict[str, Any]
    mine: dict[str, Any] | None
    said: list[str]
    """Of what could not be put back."""
    told: list[str] = []
    """Of what was, though the script has it otherwise."""


def restore(checkpoints: Any, parts: Parts) -> Back | None:
    """The newest checkpoint that is whole; None where there is none."""
    import torch

    found = checkpoints.newest()
    while found is not None:
        first = checkpoints.read(found, {})
        rest = _told(first)
        _check(parts, rest["state"], first.found.key)
        for key, order in rest["state"]["arrival"].items():
            if key in parts.modules and buckets.rebuilds(parts.modules[key]):
                buckets.warm(parts.modules[key], parts.names, order)
        places = _places(parts, rest["state"])
        with torch.no_grad():
            got = checkpoints.read(first.found, places)
        if got.found.key == first.found.key:
            return _put(parts, rest, places, got)
        found = got.found  # the first was damaged, and another one may have other tensors
    return None


def _told(first: Any) -> dict[str, Any]:
    try:
        told = loaded(first.shared)
    except Exception:
        told = None
    if not isinstance(told, dict) or "state" not in told:
        raise InvalidValue(
            f"the checkpoint {first.found.key} was not saved by a session",
            hint="use another folder",
        )
    return told


def _check(parts: Parts, state: dict[str, Any], key: str) -> None:
    for kind, have in (
        ("models", parts.modules),
        ("optimizers", parts.optimizers),
        ("others", parts.others),
    ):
        for name, each in have.items():
            if name not in state[kind] and not hasattr(each, "begin_anew"):
                raise InvalidValue(
                    f"the checkpoint {key} has no {name}; it has"
                    f" {', '.join(sorted(state[kind])) or 'none'}",
                    hint="use another folder to start from scratch",
                )


def _places(parts: Parts, state: dict[str, Any]) -> dict[str, Any]:
    """A tensor for each that is to be read."""
    import torch

    places: dict[str, Any] = {}
    for key in parts.modules:
        held, _ = parts.held(key, frozen=state.get("frozen", True))
        places |= {name: value.detach() for name, value in held.items()}
    named = {name: parameter for parameter, name in parts.names.items()}

    def like(parameter: Any) -> Any:
        def make(name: str, dtype: Any, shape: list[int], cpu: bool, sharded: bool) -> Any:
            if parameter is not None and list(parameter.shape) == shape and not cpu_only(cpu):
                return torch.empty_like(parameter, dtype=dtype, requires_grad=False)
            if sharded and hasattr(parameter, "placements"):
                from torch.distributed.tensor import zeros

                mesh, spread = parameter.device_mesh, parameter.placements
                return zeros(shape, dtype=dtype, device_mesh=mesh, placements=spread)
            return torch.empty(shape, dtype=dtype, device="cpu" if cpu else parts.device)

        def cpu_only(cpu: bool) -> bool:
            return cpu and parameter.device.type != "cpu"

        return make

    for key in parts.optimizers:
        saved = state["optimizers"][key]
        for name, values in saved["state"].items():
            if name in named or parts.ranks.stages == 1:
                places |= trees.empty(values, like(named.get(name)))
        places |= trees.empty([_without(g) for g in saved["groups"]], like(None))
        places |= {n: p.detach() for n, p in parts._loose(key).items()}
    for key in parts.others:
        places |= trees.empty(state["others"].get(key), like(None))
    return places


def _without(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _put(parts: Parts, rest: dict[str, Any], places: dict[str, Any], got: Any) -> Back:
    import torch

    state, said = rest["state"], []
    told: list[str] = []
    mine = loaded(got.mine) if got.mine is not None else None
    own, found = got.own, got.found
    with torch.no_grad():
        for name, tensor in own.items():
            if name.startswith("rank.") and name.removeprefix("rank.") in places:
                places[name.removeprefix("rank.")].copy_(tensor)
    for key, module in parts.modules.items():
        if besides := state["models"][key]:
            bare(module).load_state_dict(besides, strict=False)
    if parts.switchable:
        told = switches.put_back(parts.named_modules(), state.get("switches") or {})
    for key, optimizer in parts.optimizers.items():
        saved = state["optimizers"][key]
        _optimizer(parts, optimizer, saved, places)
        if saved.get("kind", kind := type(optimizer).__name__) != kind:
            said.append(f"{key} was {saved['kind']} at the checkpoint, and continues as {kind}")
    if lost := [name for name in state.get("held") or () if name not in places]:
        said.append(
            f"the checkpoint has {', '.join(lost[:3])}{' and more' if len(lost) > 3 else ''}, which"
            " the model does not have, or has frozen, when the session is made: it starts from"
            " scratch; make it before the session"
        )
    others = state["others"]
    if mine is not None:
        others = {**others, **mine["state"]["others"]}
    for key, other in parts.others.items():
        if key in others:
            other.load_state_dict(trees.together(others[key], places))
        elif words := other.begin_anew():
            said.append(words)
    for key, other in parts.each.items():
        kept = mine["state"].get("each", {}) if mine is not None else {}
        if key in kept:
            tensors = {name: tensor.to(parts.device) for name, tensor in own.items()}
            other.load_state_dict(trees.together(kept[key], tensors))
        else:
            said.append(_anew(key, other, found.world, parts))
    parts.gradients.restore(own)
    if state["gradients"] and mine is None:
        said.append(
            "the number of ranks has changed in the middle of accumulating gradients: those so far"
            " are left out of the next optimizer step"
        )
    for key, power in parts.powersgd.items():
        if mine is None:
            said.append(f"the number of ranks has changed: {key} begins without its error feedback")
        elif key in mine["state"]["powersgd"]:
            kept = {name: tensor.to(parts.device) for name, tensor in own.items() if key in name}
            powersgd.restored(power, key, mine["state"]["powersgd"][key], kept)
    parts.arrival.known(state["arrival"])
    return Back(found.step, found.key, found.name, found.world, rest, mine, said, told)


def _anew(key: str, other: Any, world: int, parts: Parts) -> str:
    """What belongs to each rank and is not there begins again."""
    if not hasattr(other, "begin_anew"):
        raise InvalidValue(
            f"the checkpoint has no {key} for these ranks (it is of {world})",
            hint="resume with as many ranks, and in the same way, as it was made with;"
            " more: tradewind explain ranks",
        )
    return str(other.begin_anew())


def _optimizer(
    parts: Parts, optimizer: Any, saved: dict[str, Any], tensors: dict[str, Any]
) -> None:
    import torch

    named = {name: parameter for parameter, name in parts.names.items()}
    groups = saved["groups"]
    names = [[parts.names[p] for p in group["params"]] for group in optimizer.param_groups]
    kept = [group["params"] for group in groups]
    if parts.ranks.stages > 1:  # those of other stages are not here
        kept = [[name for name in group if name in named] for group in kept]
    # Their order may be another: a pipeline's stages come one after the other.
    if [sorted(group) for group in names] != [sorted(group) for group in kept]:
        raise InvalidValue(
            "the optimizer has other parameters, or other groups of them, than at the checkpoint",
            hint="use another folder to start from scratch; add groups before the session",
        )
    for group, saved_group in zip(optimizer.param_groups, groups, strict=True):
        for name, value in trees.together(_without(saved_group), tensors).items():
            if isinstance(group.get(name), torch.Tensor) and isinstance(value, torch.Tensor):
                group[name].copy_(value)
            else:
                group[name] = value
    optimizer.state.clear()
    for name, values in saved["state"].items():
        if name in named or parts.ranks.stages == 1:
            optimizer.state[named[name]] = trees.together(values, tensors)


def epoch(shared: dict[str, Any], feed: Any) -> int:
    """The one that the loop was in. Its data may be elsewhere, if a loop was left early; but where
    the data begins anew, so does the loop."""
    if feed is None:
        return int(shared.get("epoch", 0))
    there = (shared["feed"] or {}).get("epoch")
    return int(shared.get("epoch", feed.epoch)) if there == feed.epoch else int(feed.epoch)


def numbers(back: Back, seed: int, rank: int) -> None:
    """The random generators of this rank, as they were; a new rank's follow from the seed."""
    if back.mine is not None:
        seeding.restored(back.mine["state"]["rng"])
        named.restored(back.mine["state"]["rng"].get("named", {}))
    else:
        seeding.begun(mixed(seed, back.step, rank, _RANK))
