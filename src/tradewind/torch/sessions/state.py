"""Everything a training consists of, as the checkpoint engine takes it and gives it back.

Tensors are named by the parameter they belong to, as the model names it without its wrappers:
DistributedDataParallel, torch.compile and fully_shard make no difference, so a checkpoint of one
can be continued with another. PyTorch's get_optimizer_state_dict would name them so too, but makes
an optimizer that has no state yet take a step to find out what it would be, and that step counts.

Some tensors are each rank's own although they look shared: running statistics are made of a rank's
own samples until rank 0's are sent around. Small ones are kept of every rank, and used when there
are as many ranks again.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.torch import trees
from tradewind.torch.feeds import seeding
from tradewind.torch.ranks import Ranks, ranks_of
from tradewind.torch.sessions import named, powersgd, stages, switches
from tradewind.torch.sessions.buckets import Arrival
from tradewind.torch.sessions.gradients import Gradients

_SMALL = 1 << 20
_WRAPPINGS = ("_orig_mod.", "_checkpoint_wrapped_module.")


class Captured(Struct):
    """As `Checkpoints.save` takes it. `soon`: some of it changes before the next optimizer step."""

    tensors: dict[str, Any]
    own: dict[str, Any]
    shared: dict[str, Any]
    mine: dict[str, Any]
    soon: bool


class Parts:
    """What the script gave to the session."""

    def __init__(
        self,
        *,
        model: Any,
        optimizer: Any,
        scheduler: Any = None,
        scaler: Any = None,
        ema: Any = None,
        extra: Mapping[str, Any] | None = None,
        frozen: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        import torch

        self._world = world
        self.frozen = frozen
        self.modules: dict[str, Any] = _several(model, "model")
        self.trained = set(self.modules)
        self.optimizers: dict[str, Any] = {
            name: each
            for name, each in _several(optimizer, "optimizer").items()
            if not getattr(each, "kept_elsewhere", False)  # DeepSpeed's: each rank's own parts
        }
        others = {**_several(scheduler, "scheduler"), **_several(scaler, "scaler")}
        others |= _several(ema, "ema")
        taken = {**self.modules, **self.optimizers, **others}
        if same := taken.keys() & (extra or {}).keys():
            raise InvalidValue(
                f"extra {min(same)!r} has a name that is used already", hint="use another"
            )
        others |= extra or {}
        self.powersgd = {k: v for k, v in others.items() if powersgd.is_state(v)}
        others = {k: v for k, v in others.items() if k not in self.powersgd}
        for name, each in others.items():
            if not hasattr(each, "state_dict") or not hasattr(each, "load_state_dict"):
                raise InvalidValue(
                    f"{name} is a {type(each).__name__}, which has no state_dict and"
                    " load_state_dict",
                    hint="give it both: the session keeps what they say",
                )
        self.modules |= {k: v for k, v in others.items() if isinstance(v, torch.nn.Module)}
        self.others = {k: v for k, v in others.items() if k not in self.modules}
        self.each = {k: v for k, v in self.others.items() if getattr(v, "of_each_rank", False)}
        """What is another thing on each rank, though it has the same name."""
        self.others = {k: v for k, v in self.others.items() if k not in self.each}
        self.ranks: Ranks = ranks_of(self.modules.values(), rank, world)
        self.device = _device(self.modules)
        self.names: dict[Any, str] = {}
        self._name_parameters()
        self.gradients = Gradients(self.names, self.modules)
        self.arrival = Arrival(self.modules, self.names)

    def _name_parameters(self) -> None:
        """Every one that a model or an optimizer has by now."""
        names = self.names
        for key, module in self.modules.items():
            for name, parameter in bare(module).named_parameters(remove_duplicate=False):
                names.setdefault(parameter, f"{key}.{clean(name)}")
        for key, optimizer in self.optimizers.items():
            for at, group in enumerate(optimizer.param_groups):
                for number, parameter in enumerate(group["params"]):
                    names.setdefault(parameter, f"{key}.loose.{at}.{number}")

    def facts(self) -> dict[str, str]:
        """Of what is left out of checkpoints: a few numbers of each tensor, to know it again."""
        import torch

        if self.frozen:
            return {}
        digest = hashlib.sha256()
        for parameter, name in sorted(self.names.items(), key=lambda item: item[1]):
            if is_frozen(parameter) and not hasattr(parameter, "placements"):
                flat = parameter.detach().reshape(-1)
                some = flat[:: max(1, flat.numel() // 64)].to("cpu", torch.float64)
                digest.update(f"{name} {tuple(parameter.shape)} {some.tolist()}".encode())
        return {"the frozen parameters' digest": digest.hexdigest()[:16]}

    @property
    def switchable(self) -> bool:
        """Whether all ranks have the same models, with everything in their checkpoints."""
        return self.frozen and self.ranks.stages == 1

    def named_modules(self) -> dict[str, Any]:
        return {key: bare(self.modules[key]) for key in self.modules if key in self.trained}

    # -- out ---------------------------------------------------------------------------------------

    def captured(self, *, gradients: bool = True) -> Captured:
        self._name_parameters()  # models grow, and optimizers are given more groups
        tensors: dict[str, Any] = {}
        own: dict[str, Any] = {}
        rest: dict[str, Any] = {"models": {}, "optimizers": {}, "others": {}}
        rest["frozen"] = self.frozen
        if self.switchable:
            rest["switches"] = switches.captured(self.named_modules())
        for key, module in self.modules.items():
            rest["models"][key] = copy.deepcopy(self._module(key, module, tensors, own))
        if self.ranks.stages == 1:
            rest["held"] = list(tensors)
        for key, optimizer in self.optimizers.items():
            rest["optimizers"][key] = self._optimizer(key, optimizer, tensors)
        for key, other in self.others.items():
            found: dict[str, Any] = {}
            rest["others"][key] = trees.apart(other.state_dict(), key, found)
            for name, tensor in found.items() if self.ranks.stage == 0 else ():
                self._put(name, tensor.clone(), tensors, own)
        numbers = {**seeding.captured(), "named": named.captured()}
        mine: dict[str, Any] = {"rng": numbers, "powersgd": {}}
        mine["others"] = rest["others"] if self._world > 1 else {}
        mine["each"] = {}
        for key, other in self.each.items():
            found = {}
            mine["each"][key] = trees.apart(other.state_dict(), f"each.{key}", found)
            own |= found
        for key, state in self.powersgd.items():
            mine["powersgd"][key] = powersgd.captured(state, key, own)
        partial = self.gradients.partial() if gradients else {}
        own |= {f"grad.{name}": grad for name, grad in partial.items()}
        rest |= {"gradients": len(partial), "arrival": self.arrival.order}
        if self.ranks.stages > 1:
            rest = stages.merged(rest, self.ranks)
        soon = bool(partial or self.powersgd or self.each)
        return Captured(tensors, own, {"state": rest}, {"state": mine}, soon)

    def _module(
        self, key: str, module: Any, tensors: dict[str, Any], own: dict[str, Any]
    ) -> dict[str, Any]:
        """Puts its tensors there; gives what it has besides."""
        parameters = {id(p) for p in bare(module).parameters()}
        held, besides = self.held(key, frozen=self.frozen)
        for name, value in held.items():
            _check(name, value)
            if id(value) in parameters or hasattr(value, "placements"):
                tensors[name] = value.detach()
            else:  # running statistics change in the next forward pass
                self._put(name, value.detach().clone(), tensors, own)
        return besides

    def held(self, key: str, *, frozen: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tensors of a model as a checkpoint names them, and what it has besides: what modules
        say of themselves (`get_extra_state`) goes back by their own function, tensors or not."""
        import torch

        tensors, besides = {}, {}
        for name, value in bare(self.modules[key]).state_dict(keep_vars=True).items():
            if isinstance(value, torch.Tensor) and name.rpartition(".")[2] != "_extra_state":
                if frozen or key not in self.trained or not is_frozen(value):
                    tensors[f"{key}.{clean(name)}"] = value
            else:
                besides[name] = value
        return tensors, besides

    def _optimizer(self, key: str, optimizer: Any, tensors: dict[str, Any]) -> dict[str, Any]:
        groups = []
        common = tensors if self.ranks.stage == 0 else {}  # of which all stages have the same
        for at, group in enumerate(optimizer.param_groups):
            made = {
                name: trees.apart(value, f"{key}.group.{at}.{name}", common)
                for name, value in group.items()
                if name != "params"
            }
            made["params"] = [self.names[parameter] for parameter in group["params"]]
            groups.append(made)
        state = {}
        for parameter, values in optimizer.state.items():
            name = self.names.get(parameter)
            if name is None:
                raise InvalidValue(f"{key} has state of a parameter that it does not have itself")
            state[name] = trees.apart(values, f"{key}.{name}", tensors)
        for name, parameter in self._loose(key).items():
            tensors[name] = parameter.detach()
        return {"groups": groups, "state": state, "kind": type(optimizer).__name__}

    def _loose(self, key: str) -> dict[str, Any]:
        return {n: p for p, n in self.names.items() if n.startswith(f"{key}.loose.")}

    def _put(self, name: str, tensor: Any, tensors: dict[str, Any], own: dict[str, Any]) -> None:
        tensors[name] = tensor
        if self._world > 1 and tensor.numel() * tensor.element_size() <= _SMALL:
            own[f"rank.{name}"] = tensor


def _check(name: str, value: Any) -> None:
    from torch.nn.parameter import is_lazy

    if is_lazy(value):
        raise InvalidValue(
            f"{name} has no shape yet", hint="run a batch through the model before the session"
        )
    if value.device.type == "meta":
        raise InvalidValue(
            f"{name} has no content: it is on the device meta",
            hint="give it some first; a buffer may be registered with persistent=False",
        )


# -- helpers that restoring needs too --------------------------------------------------------------


def bare(module: Any) -> Any:
    """Without what is wrapped around the whole of it."""
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    while True:
        if isinstance(module, (DistributedDataParallel, DataParallel)):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def is_frozen(value: Any) -> bool:
    """A parameter that is not trained. Statistics are no parameters: they change."""
    from torch.nn import Parameter

    return isinstance(value, Parameter) and not value.requires_grad


def clean(name: str) -> str:
    for wrapping in _WRAPPINGS:
        name = name.replace(wrapping, "")
    return name


def _several(given: Any, name: str) -> dict[str, Any]:
    """One object, a list or a table of them, by name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {f"{name}.{key}": each for key, each in given.items() if each is not None}
    if isinstance(given, (list, tuple)):
        return {f"{name}.{number}": each for number, each in enumerate(given)}
    return {name: given}


def _device(modules: dict[str, Any]) -> Any:
    import torch

    for module in modules.values():
        for parameter in module.parameters():
            return parameter.device
    return torch.device("cpu")
