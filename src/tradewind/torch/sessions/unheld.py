"""What takes part in the training and was not given to the session: it would be lost, unsaid.

Schedulers, gradient scalers and averaged copies that exist when the session is made are taken, as
if they had been given. What is made later, or trains beside it (another optimizer, a copy of the
model, an average of its weights, a second loader), is an error in the first steps of the first
start, before it costs anything. After that nothing ends a training that does well: it is a warning,
once. Of frameworks, which know their parts, optimizers, copies and averages are looked at.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from weakref import WeakSet, ref

from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds.seeding import reached, within
from tradewind.torch.sessions.averages import Average, Seen, alive, as_weights, found, looked_once
from tradewind.torch.sessions.gradients import has_gradients
from tradewind.torch.sessions.looking import digest_of
from tradewind.torch.sessions.state import Parts, bare

_LOOKS = 3
"""Steps after which copies that change have shown it."""
_TENSORS = 64
_REACHED = 5000

# -- schedulers, scalers, averages: taken ----------------------------------------------------------


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _of_optimizers(optimizers: list[Any], given: list[Any]) -> list[Any]:
    """Schedulers of these that were not given, nor are part of another."""
    from torch.optim.lr_scheduler import LRScheduler

    if not any("initial_lr" in group for each in optimizers for group in each.param_groups):
        plateau = any(hasattr(each.step, "_wrapped_by_lr_sched") for each in optimizers)
        if not plateau and given:
            return []
    found = [
        each
        for each in alive((LRScheduler,))
        if any(getattr(each, "optimizer", None) is optimizer for optimizer in optimizers)
    ]
    inner = {id(part) for each in found for part in getattr(each, "_schedulers", ())}
    known = {id(each) for each in given} | {
        id(value) for each in given for value in getattr(each, "__dict__", {}).values()
    }
    known |= {id(part) for each in given for part in getattr(each, "_schedulers", ())}
    return [each for each in found if id(each) not in inner | known]


def _scalers(given: list[Any]) -> list[Any]:
    from torch.amp import GradScaler

    known = {id(each) for each in given}
    known |= {id(each) for session in _sessions for each in session.others()}
    return [each for each in alive((GradScaler,)) if each.is_enabled() and id(each) not in known]


def _averages(parts: list[Any], modules: list[Any]) -> list[Any]:
    """PyTorch's own, of one of these models."""
    from torch.optim.swa_utils import AveragedModel

    known = {id(each) for each in parts}
    names = [set(bare(module).state_dict()) for module in modules]
    return [
        each
        for each in alive((AveragedModel,))
        if id(each) not in known and set(bare(each.module).state_dict()) in names
    ]


def taken(
    model: Any, optimizer: Any, given: dict[str, Any], say: Callable[[str], None]
) -> dict[str, Any]:
    """What goes to `scheduler`, `scaler` and `ema`: what was given, and else what was found. A
    kind that was given in part is taken as the script says; what is missing is noticed later."""
    optimizers, modules = _listed(optimizer), _listed(model)
    extra = _listed(given.get("extra"))
    found: dict[str, Callable[[], list[Any]]] = {
        "scheduler": lambda: _of_optimizers(optimizers, extra),
        "scaler": lambda: _scalers(extra),
        "ema": lambda: _averages(extra + modules, modules),
    }
    made = dict(given)
    with looked_once():
        first = {name: search() for name, search in found.items() if given.get(name) is None}
    for name in list(first):
        if not (there := first.pop(name)):
            continue
        if len(there) > 1:  # what nobody uses any more may only wait to be collected
            del there
            gc.collect()
            there = found[name]()
        if len(there) > 1 and len(optimizers) == 1:
            kinds = ", ".join(type(each).__name__ for each in there)
            raise InvalidValue(
                f"there are {len(there)} that could be the session's {name}: {kinds}",
                hint=f"say which: {name}=…; all of them: a list",
            )
        made[name] = there[0] if len(there) == 1 else there
        for each in there:
            say(f"keeps the {type(each).__name__} too ({name}=…)")
    return made


# -- what trains beside the session: refused -------------------------------------------------------

_sessions: WeakSet[Unheld] = WeakSet()
_held: WeakSet[Any] = WeakSet()
"""Optimizers that a session holds whose loop has begun: nothing is to be asked about their steps,
which are most."""


@cache
def _watch_optimizers() -> None:
    """Every optimizer's steps, from now on."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def stepped(optimizer: Any, *_: Any) -> None:
        if optimizer in _held:
            return
        for each in list(_sessions):
            each.stepped(optimizer)

    register_optimizer_step_post_hook(stepped)


@cache
def _watch_loaders() -> None:
    """Every loader's batches, from now on."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    theirs = _BaseDataLoaderIter.__next__

    def __next__(self: Any) -> Any:  # noqa: N807
        if _sessions and not reading.depth:
            for each in list(_sessions):
                each.reads(self)
        return theirs(self)

    _BaseDataLoaderIter.__next__ = __next__


class _Reading:
    """Around each batch, so not by contextlib, whose generators cost as much as a batch's place."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


reading = _Reading()
"""A session reads its own data."""


class Unheld:
    """Of one session. `step` says how many steps it has made; `first` whether this is rank 0;
    `data` is what it reads. `refuses`: what is found in the first steps is an error; else, and
    afterwards, only where it is `strict`. `kept`: what is in checkpoints besides. `driven`: its
    loop is a framework's, which knows its parts."""

    def __init__(
        self,
        parts: Parts,
        step: Callable[[], int],
        warn: Callable[[str], None],
        *,
        first: bool,
        data: list[Any],
        refuses: bool = True,
        strict: bool = False,
        kept: Callable[[], Iterable[Any]] = tuple,
        driven: bool = False,
    ) -> None:
        self._parts, self._step, self._warn = parts, step, warn
        self.data, self._kept, self._driven = data, kept, driven
        self._refuses, self._strict = refuses, strict
        self._said: set[str] = set()
        # Other ranks may still be sent the first one's weights.
        self._began_with = self._digest_of_weights() if first and not driven else ""
        self._optimizers: dict[int, tuple[Any, int]] = {}
        self._loaders: dict[int, tuple[Any, int | None]] = {}
        self._trouble: InvalidValue | None = None
        self._looks = 0
        self._copies: dict[int, tuple[Any, str]] = {}
        self._averages: list[Seen] = []
        self._dtypes = {name: tensor.dtype for name, tensor in self._tensors()}
        self._passing = self._digest_of_passing()
        self._frozen = self._digest_of_frozen()
        self.begun = driven
        """The loop has."""
        _watch_optimizers()
        _watch_loaders()
        _sessions.add(self)

    def begins(self) -> None:
        """The loop does."""
        if not self.begun and self._began_with and self._began_with != self._digest_of_weights():
            raise InvalidValue(
                "weights change between tw.session(…) and its loop: when the training resumes, that"
                " would overwrite what was restored",
                hint="load or initialize them before the session is made",
            )
        self.begun = True

    def close(self) -> None:
        _sessions.discard(self)
        _held.difference_update(self._parts.optimizers.values())

    def others(self) -> list[Any]:
        return list(self._parts.others.values())

    # -- what others tell --------------------------------------------------------------------------

    def stepped(self, optimizer: Any) -> None:
        if any(optimizer is each for each in self._parts.optimizers.values()):
            if not self.begun and has_gradients(optimizer):
                raise InvalidValue(
                    "the optimizer makes a step between tw.session(…) and its loop: when the"
                    " training resumes, it would be made again",
                    hint="make such steps before the session, or in its loop",
                )
            if self.begun:
                _held.add(optimizer)
            return
        if self._trouble is not None or any(each._holds(optimizer) for each in _sessions):
            return
        mine = any(p in self._parts.names for g in optimizer.param_groups for p in g["params"])
        _, first = self._optimizers.setdefault(id(optimizer), (optimizer, self._step()))
        if mine or first != self._step():  # one for each step is an inner loop's, an attack's
            self._trouble = self._unknown(optimizer)

    def _unknown(self, optimizer: Any) -> InvalidValue:
        inside = next(
            (
                f"{type(each).__name__}.{name}"
                for each in self._parts.optimizers.values()
                for name, value in vars(each).items()
                if value is optimizer
            ),
            None,
        )
        whose = f" ({inside})" if inside else ""
        both = "optimizer={'outer': optimizer, 'base': optimizer.base_optimizer}"
        one = "extra={'optimizer': optimizer}" if self._driven else "optimizer=[…]"
        return InvalidValue(
            f"{type(optimizer).__name__}{whose} makes steps, and the session does not hold it: its"
            " state would be lost",
            hint=f"give all of them: {both}" if inside else f"give it too: {one}",
        )

    def _holds(self, optimizer: Any) -> bool:
        """Also where what it was given only wraps it, and has its state: Lightning Fabric's."""
        if getattr(optimizer, "kept_elsewhere", False):
            return True
        others = [getattr(each, "optimizer", each) for each in self._parts.others.values()]
        return any(each is optimizer for each in others) or any(
            optimizer is each or optimizer.state is each.state
            for each in self._parts.optimizers.values()
        )

    def reads(self, iterator: Any) -> None:
        """A loader that gives batches in one step and in another takes part in the training; an
        evaluation is read between two steps, from its beginning each time. Workers that persist
        have one iterator for all of these times."""
        if self._trouble is not None or not self.begun or self._driven:
            return
        step = self._step()
        known = self._loaders.get(id(iterator))
        anew = getattr(iterator, "_num_yielded", 1) == 0
        if known is None or known[0]() is not iterator or anew:
            self._loaders[id(iterator)] = (ref(iterator), step)
        elif known[1] is None or known[1] == step:
            return
        elif self._reads_ahead(iterator):
            self._loaders[id(iterator)] = (known[0], None)
        else:
            what = type(getattr(iterator, "_dataset", None)).__name__
            self._trouble = InvalidValue(
                f"a DataLoader that the session does not hold (of a {what}) is read in one step"
                " after the other: a resumed training would start it from scratch",
                hint="data=loader and session.batches(), for a second one `other ="
                " session.stream(loader)` and next(other)",
            )

    def _reads_ahead(self, iterator: Any) -> bool:
        """It is of a loader inside the session's data: that may have a thread which reads it."""
        from torch.utils.data import DataLoader

        order = getattr(iterator, "_index_sampler", None)
        inner = reached((DataLoader,), *self.data)
        return any(order is getattr(each, "_index_sampler", self) for each in inner)

    # -- after a step ------------------------------------------------------------------------------

    def look(self) -> None:
        """After each of the first steps, and before saves."""
        self.begun = True
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            self.doubt(trouble)
        if self._looks:
            self._check_changes()
        if self._looks < _LOOKS or self._looks & (self._looks - 1) == 0:  # ever more rarely
            with looked_once():
                if self._looks == 0 and not self._driven:
                    self._check_dtypes()
                    self._check_made_later()
                self._check_copies()
                self._check_averages()
        self._looks += 1

    def due(self) -> bool:
        return self._looks < _LOOKS or self._trouble is not None

    def doubt(self, error: InvalidValue) -> None:
        """An error while it costs nothing, else said once."""
        if self._strict or (self._refuses and self._looks < _LOOKS):
            raise error
        if error.message not in self._said:
            self._said.add(error.message)
            self._warn(f"{error.message}; {error.hint}")

    def _check_dtypes(self) -> None:
        tensors = dict(self._tensors())
        if made := [name for name in tensors if name not in self._dtypes]:
            self._warn(
                f"{', '.join(made[:3])}{' and more' if len(made) > 3 else ''}: made in training, so"
                " a model that resumes does not have it when its checkpoint is read; make it before"
                " the session"
            )
        for name, tensor in tensors.items():
            if tensor.dtype != (before := self._dtypes.get(name, tensor.dtype)):
                raise InvalidValue(
                    f"{name} was {before} when the session was made and is {tensor.dtype}: a"
                    " resumed training would lose what lies between",
                    hint="convert the model before the session is made",
                )

    def _check_made_later(self) -> None:
        parts = self._parts
        others = [*parts.others.values(), *parts.each.values()]
        inner = [value for each in others for value in getattr(each, "__dict__", {}).values()]
        optimizers = list(parts.optimizers.values())
        for each in _of_optimizers(optimizers, others + [v for v in inner if _is_plain(v)]):
            raise _later(each, "scheduler")
        for each in _scalers(others):
            raise _later(each, "scaler")
        modules = list(parts.modules.values())
        for each in _averages(modules, modules):
            raise _later(each, "ema")

    def _check_changes(self) -> None:
        if self._looks < _LOOKS and self._digest_of_frozen() != self._frozen:
            raise InvalidValue(
                "parameters that need no gradient change in training, and frozen=False leaves them"
                " out of checkpoints",
                hint="leave frozen=False out, or give that model as ema=… or extra={…}",
            )
        if (now := self._digest_of_passing()) != self._passing:
            changed = sorted(name for name, word in now.items() if self._passing.get(name) != word)
            self._passing = now
            if changed:
                self._warn(
                    f"{', '.join(changed[:3])}: buffers that are not persistent change in training,"
                    " and are in no checkpoint; register_buffer(…, persistent=True) keeps them"
                )
        for there, word in list(self._copies.values()):
            self._check_copy(there(), word)

    def _check_copies(self) -> None:
        """Models that change and are nobody's: what is found now is looked at again later."""
        mine, before, self._copies = self._mine(), self._copies, {}
        for each in self._strangers():
            at, word = id(each), digest_of(_some(each, mine))
            known, first = before.get(at, (lambda: None, ""))
            same = known() is each
            self._copies[at] = (ref(each), first if same else word)
            if same:
                self._check_copy(each, first)

    def _check_copy(self, module: Any, word: str) -> None:
        if module is None or (now := digest_of(_some(module, self._mine()))) == word:
            return
        self._copies[id(module)] = (ref(module), now)
        self.doubt(
            InvalidValue(
                f"a {type(module).__name__} changes in training, and the session does not hold"
                " it: after a resume it would start from scratch",
                hint=f"give it: {self._more}extra={{'name': module}}",
            )
        )

    @property
    def _more(self) -> str:
        return "" if self._driven else "model=[model, other], ema=average or "

    def _check_averages(self) -> None:
        """Averages of the weights that are no modules. What can be given is to be given; what
        cannot, such as a list, is named."""
        before, copied = self._averages, as_weights(self._parts)
        there = found(self._parts, self.held)
        self._averages = [each.seen() for each in there]
        for average, now in zip(there, self._averages, strict=True):
            changed = any(now.is_that(then) and now.word != then.word for then in before)
            if changed and now.word not in copied:
                self._average_changes(average)

    def _average_changes(self, average: Average) -> None:
        owner = average.owner
        error = InvalidValue(
            f"{average.name} has tensors like the model's parameters, changes in training, and is"
            " in no checkpoint: after a resume it would start from scratch",
            hint="give it: extra={'name': …}, an object with state_dict and load_state_dict",
        )
        if hasattr(owner, "state_dict") and hasattr(owner, "load_state_dict"):
            self.doubt(error)
        elif self._strict:
            raise error
        elif error.message not in self._said:
            self._said.add(error.message)
            self._warn(f"{error.message}; {error.hint}")

    def beside(self, *, anew: bool) -> dict[str, str]:
        """Words about copies and averages that no checkpoint has, by what they are called. `anew`:
        they are looked for."""
        mine, words = self._mine(), dict[str, list[str]]()
        if anew:
            with looked_once():
                self._beside = self._strangers(), found(self._parts, self.held)
        modules, averages = self._beside
        for module in modules:
            words.setdefault(type(module).__name__, []).append(digest_of(_some(module, mine)))
        for average in averages:
            words.setdefault(average.name, []).append(average.word())
        return {name: " ".join(sorted(each)) for name, each in words.items()}

    _beside: tuple[list[Any], list[Average]] = [], []
    """Of a training that is tried."""

    # -- what it looks at --------------------------------------------------------------------------

    def _tensors(self) -> Iterator[tuple[str, Any]]:
        for key in self._parts.modules:
            yield from self._parts.held(key, frozen=True)[0].items()

    def _digest_of_weights(self) -> str:
        return digest_of([tensor for _, tensor in self._tensors()][:_TENSORS])

    def _digest_of_passing(self) -> dict[str, str]:
        """Buffers that are not persistent."""
        found: dict[str, str] = {}
        for key, module in self._parts.modules.items():
            for name, each in bare(module).named_modules():
                for buffer in getattr(each, "_non_persistent_buffers_set", ()):
                    tensor = each._buffers.get(buffer)
                    if tensor is not None and len(found) < _TENSORS:
                        found[".".join(filter(None, (key, name, buffer)))] = digest_of([tensor])
        return found

    def _digest_of_frozen(self) -> str:
        if self._parts.frozen:
            return ""
        models = [bare(self._parts.modules[key]) for key in self._parts.trained]
        frozen = [p for model in models for p in model.parameters() if not p.requires_grad]
        return digest_of(frozen[:_TENSORS])

    def _strangers(self) -> list[Any]:
        """Models that the session does not hold, and that are not part of another."""
        import torch

        mine = self._mine()
        known = {id(each) for each in self.held()}
        for each in self._parts.modules.values():
            known |= {id(inner) for inner in each.modules()}
            known |= {id(inner) for inner in bare(each).modules()}
        for session in _sessions:
            for each in session._parts.modules.values():
                known |= {id(inner) for inner in each.modules()}
        there = [each for each in alive((torch.nn.Module,)) if id(each) not in known]
        inner = {id(part) for each in there for part in _children(each)}
        return [
            each
            for each in there
            if id(each) not in inner and "_parameters" in vars(each) and _some(each, mine)
        ]

    def held(self) -> Iterator[Any]:
        """What is part of an object that checkpoints have. Not of schedulers, whose functions may
        know the whole script, nor of a framework."""
        parts = self._parts
        others = [
            each
            for key, each in (*parts.others.items(), *parts.each.items())
            if not key.startswith(("scheduler", "scaler", "framework"))
        ]
        yield from within(*others, *self._kept(), most=_REACHED, but=("Trainer", "Accelerator"))

    def _mine(self) -> set[int]:
        """The tensors that the session holds: a wrapper around a model has no others."""
        found = {id(parameter) for parameter in self._parts.names}
        for each in self._parts.modules.values():
            found |= {id(buffer) for buffer in bare(each).buffers()}
        return found


def _children(module: Any) -> list[Any]:
    return [each for each in vars(module).get("_modules", {}).values() if each is not None]


def _some(module: Any, mine: set[int]) -> list[Any]:
    """Of its own tensors, but for lazy ones and those on the meta device, which have no values."""
    from torch.nn.parameter import is_lazy

    every = (*module.parameters(), *module.buffers())
    there = (each for each in every if not is_lazy(each) and not each.is_meta)
    tensors = [each for each in there if id(each) not in mine]
    return tensors if len(tensors) <= _TENSORS else tensors[: _TENSORS // 2] + tensors[-32:]


def _is_plain(value: Any) -> bool:
    return hasattr(value, "state_dict")


def _later(each: Any, name: str) -> InvalidValue:
    kind = type(each).__name__
    return InvalidValue(
        f"the session does not hold a {kind}: it would start from scratch after a resume",
        hint=f"make it before the session, and give it: {name}=…",
    )
