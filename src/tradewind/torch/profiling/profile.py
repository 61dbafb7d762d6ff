"""Counts what a model costs, on fake tensors: no GPU, no real memory, no timing.

The model is built and run inside PyTorch's FakeTensorMode, where a tensor is a shape (faked.py).
Three batches are run, so that what grows with the batch and what does not can be told apart.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tradewind.base.errors import InvalidValue, MissingExtra
from tradewind.model.profile import Layer, Profile
from tradewind.torch.profiling.faked import cpu_attention, dispatching, faked
from tradewind.torch.profiling.inputs import InputSpec, batch_of
from tradewind.torch.profiling.meter import Meter, storage_of, tensors_in
from tradewind.torch.profiling.theirs import calling

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_MOST_BATCH = 1_000_000
_LINEAR = 1e-3  # how far from proportional a figure may be


def profile(
    factory: Callable[[], Any],
    *,
    inputs: Sequence[InputSpec] = (),
    batch: int | None = None,
    dtype: str | None = None,
    forward_only: bool = False,
    name: str | None = None,
    folder: Path | None = None,
) -> Profile:
    """The profile of what `factory()` returns: a module, or (module, inputs[, loss function]).

    Example inputs are a tensor, a sequence of arguments or a mapping of keyword arguments; `inputs`
    stand in their place. `loss(output)` or `loss(output, *inputs)` makes the number to be
    differentiated; without one it is the output's `.loss`, its `.logits` summed, or the sum of all
    floating outputs. `folder` is the one that file names in errors are relative to.
    """
    torch = require_torch()
    name = name or str(getattr(factory, "__qualname__", type(factory).__name__))
    if batch is not None and not 1 <= batch <= _MOST_BATCH:
        raise InvalidValue(f"the batch is {batch}, not a number from 1 to {_MOST_BATCH:,}")
    if dtype is not None and dtype not in DTYPES:
        raise InvalidValue(f"there is no dtype {dtype!r}", hint=f"one of {', '.join(DTYPES)}")
    with faked(torch), ExitStack() as stack:
        with calling(name, folder), dispatching(torch, None, building=True):
            model = _taken(torch, factory(), name)
        if "torch._dynamo" in sys.modules:  # a compiled model is profiled as it was written
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        _make_fake(torch, model.module)
        if dtype is not None:
            _cast(torch, model.module, getattr(torch, DTYPES[dtype]))
        if inputs:
            model.given(torch, tuple(inputs))
        model.check(torch, name)
        if forward_only:
            model.module.eval()
        batches = _batches(batch or model.batch)
        float_type = getattr(torch, DTYPES[dtype]) if dtype else None
        layers = _layers(torch, model.module)
        runs = []
        for size in batches:
            with calling(f"{name} at batch {size}", folder):
                runs.append(_run(torch, model, layers, size, float_type, forward_only))
        return _profile(torch, model, layers, batches, runs, forward_only, name)


def require_torch() -> Any:
    try:
        # PyTorch complains about a missing numpy, which nothing here needs.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*NumPy.*")
            import torch
            import torch._subclasses.fake_tensor
            import torch.utils.flop_counter
    except ImportError as error:
        if error.name not in ("torch", None):
            raise
        raise MissingExtra(
            "a profile needs PyTorch, which is not installed",
            hint="pip install 'tradewind[torch]'",
        ) from None
    return torch


# -- what the factory returned -------------------------------------------------------------------


@dataclass
class _Model:
    """`fixed` are the ids of inputs that have no batch, whatever their leading size."""

    module: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[..., Any] | None = None
    batch: int = 0
    vocab: int = 0
    fixed: frozenset[int] = frozenset()

    def given(self, torch: Any, specs: tuple[InputSpec, ...]) -> None:
        """Takes the inputs of the command line instead of the factory's."""
        self.batch = batch_of(specs)
        made = [torch.zeros(s.shape, dtype=getattr(torch, s.dtype)) for s in specs]
        named = [s.name for s in specs if s.name]
        if len(set(named)) < len(named):
            raise InvalidValue(f"two inputs have the same name: {', '.join(named)}")
        self.args = tuple(t for s, t in zip(specs, made, strict=True) if not s.name)
        self.kwargs = {s.name: t for s, t in zip(specs, made, strict=True) if s.name}
        self.fixed = frozenset(id(t) for s, t in zip(specs, made, strict=True) if s.fixed)
        self.vocab = max((s.vocab or 0 for s in specs), default=0)

    def check(self, torch: Any, name: str) -> None:
        if not self.args and not self.kwargs:
            raise InvalidValue(
                f"{name} returned a model without example inputs",
                hint="say --input 'int64[8,1024]:vocab=50257', or return (model, inputs)",
            )
        if not self.batch:
            sizes = [t.shape[0] for t in tensors_in(torch, (self.args, self.kwargs)) if t.ndim]
            if not sizes or not sizes[0]:
                raise InvalidValue(
                    f"{name}: the example inputs have no tensor with a leading size",
                    hint="the leading size of the first tensor is the batch",
                )
            self.batch = sizes[0]
        tables = [m for m in self.module.modules() if isinstance(m, torch.nn.Embedding)]
        rows = max((table.num_embeddings for table in tables), default=0)
        if rows and self.vocab > rows:
            raise InvalidValue(
                f"vocab={self.vocab}, but the largest embedding of {name} has {rows:,} rows"
            )

    def inputs(self, torch: Any, batch: int, float_type: Any) -> tuple[Any, Any]:
        """The same inputs with another batch."""

        def moved(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            shape = tuple(value.shape)
            if shape and shape[0] == self.batch and id(value) not in self.fixed:
                shape = (batch, *shape[1:])
            kind = float_type if float_type and value.is_floating_point() else value.dtype
            fresh = torch.zeros(shape, dtype=kind)
            return fresh.requires_grad_(value.requires_grad)

        from torch.utils import _pytree as tree

        args: Any = tree.tree_map(moved, self.args)
        kwargs: Any = tree.tree_map(moved, dict(self.kwargs))
        return args, kwargs


def _taken(torch: Any, returned: Any, name: str) -> _Model:
    parts = returned if isinstance(returned, tuple) else (returned,)
    module = parts[0] if parts else None
    if not isinstance(module, torch.nn.Module) or len(parts) > 3:
        shown = ", ".join(type(part).__name__ for part in parts[:4])
        raise InvalidValue(
            f"{name} returned ({shown})"
            if isinstance(returned, tuple)
            else f"{name} gave a {shown}",
            hint="return a torch.nn.Module, or (module, example inputs[, loss function])",
        )
    module = getattr(module, "_orig_mod", module)  # torch.compile's wrapper
    model = _Model(module)
    if len(parts) > 1:
        given = parts[1]
        if isinstance(given, torch.Tensor):
            model.args = (given,)
        elif isinstance(given, Mapping):
            model.kwargs = dict(given)
        elif isinstance(given, (tuple, list)):
            model.args = tuple(given)
        else:
            raise InvalidValue(
                f"{name} returned a {type(given).__name__} for example inputs",
                hint="a tensor, a tuple of arguments, or a dict of keyword arguments",
            )
    if len(parts) > 2:
        if not callable(parts[2]):
            raise InvalidValue(
                f"{name} returned a {type(parts[2]).__name__} for the loss function",
                hint="a function of the model's output",
            )
        model.loss = parts[2]
    return model


def _make_fake(torch: Any, module: Any) -> None:
    """Fresh tensors for all: those of a model that was built at import are real, and views of a
    fake one that was deep-copied no longer know whose memory they show."""
    made: dict[int, tuple[Any, Any]] = {}

    def fresh(tensor: Any) -> Any:
        if id(tensor) not in made:
            made[id(tensor)] = tensor, torch.empty_like(tensor, device="cpu", requires_grad=False)
        return made[id(tensor)][1]

    module._apply(fresh)


def _cast(torch: Any, module: Any, kind: Any) -> None:
    module._apply(lambda t: t.to(kind) if t.is_floating_point() else t)


def _batches(batch: int) -> tuple[int, int, int]:
    """Three in proportion. Not 1: a size of one makes copies free that cost at any other size."""
    return (batch, 2 * batch, 3 * batch) if batch > 1 else (2, 3, 4)


def _layers(torch: Any, module: Any) -> dict[Any, str]:
    """The modules a reader would name: containers, and what holds most of it, are opened."""
    total = sum(p.numel() for p in module.parameters())
    containers = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
    found: dict[Any, str] = {}

    def walk(part: Any, name: str) -> None:
        children = list(part.named_children())
        most = 2 * sum(p.numel() for p in part.parameters()) > total
        if children and (part is module or most or isinstance(part, containers)):
            for key, child in children:
                walk(child, f"{name}.{key}" if name else key)
        else:
            found.setdefault(part, name or type(part).__name__)

    walk(module, "")
    return found


# -- one step at one batch -----------------------------------------------------------------------


@dataclass
class _Run:
    forward_flops: int = 0
    backward_flops: int = 0
    by_class: Counter[str] = field(default_factory=Counter)
    moved: int = 0
    saved: int = 0
    peak: int = 0
    layer_flops: Counter[Any] = field(default_factory=Counter)
    layer_saved: Counter[Any] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)


def _run(
    torch: Any,
    model: _Model,
    layers: Mapping[Any, str],
    batch: int,
    float_type: Any,
    forward_only: bool,
) -> _Run:
    from torch.utils.flop_counter import FlopCounterMode

    module, run = model.module, _Run()
    module.zero_grad(set_to_none=True)
    args, kwargs = model.inputs(torch, batch, float_type)
    meter = Meter(torch)
    owned = [*module.parameters(), *module.buffers(), *tensors_in(torch, (args, kwargs))]
    for tensor in owned:
        meter.lives(tensor)
    kept = {storage_of(tensor) for tensor in owned}
    flops = FlopCounterMode(display=False, custom_mapping=cpu_attention(torch))
    inside: list[Any] = []
    counted = 0

    def attribute() -> None:
        """What was counted since the last call belongs to the innermost layer."""
        nonlocal counted
        total = flops.get_total_flops()
        run.layer_flops[inside[-1] if inside else None] += total - counted
        counted = total

    def entered(layer: Any, *_: Any) -> None:
        attribute()
        inside.append(layer)

    def left(layer: Any, *_: Any) -> None:
        attribute()
        if inside and inside[-1] is layer:
            inside.pop()

    def keep(tensor: Any) -> Any:
        storage = storage_of(tensor)
        if storage not in kept:
            # The reference is weak but keeps the address from being used again.
            kept.add(storage)
            size = tensor.untyped_storage().nbytes()
            run.saved += size
            run.layer_saved[inside[-1] if inside else None] += size
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with flops, dispatching(torch, meter.ran):
        with hooks, torch.set_grad_enabled(not forward_only), _watching(layers, entered, left):
            output = module(*args, **kwargs)
            loss = None if forward_only else _loss(torch, model.loss, output, args, kwargs)
            attribute()
        run.forward_flops = flops.get_total_flops()
        del output
        if loss is not None:
            loss.backward()
        run.backward_flops = flops.get_total_flops() - run.forward_flops
    for operator, amount in flops.get_flop_counts().get("Global", {}).items():
        word = str(operator)
        attention, convolution = "attention" in word, "conv" in word
        kind = "attention" if attention else "convolution" if convolution else "matmul"
        run.by_class[kind] += amount
    run.moved, run.peak, run.unknown = meter.moved, meter.peak, meter.unknown
    module.zero_grad(set_to_none=True)
    return run


@contextmanager
def _watching(
    layers: Mapping[Any, str], entered: Callable[..., None], left: Callable[..., None]
) -> Iterator[None]:
    handles = [layer.register_forward_pre_hook(entered) for layer in layers]
    handles += [layer.register_forward_hook(left) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _loss(torch: Any, loss: Callable[..., Any] | None, output: Any, args: Any, kwargs: Any) -> Any:
    if loss is not None:
        made = loss(output, *args, **kwargs) if _wants_inputs(loss) else loss(output)
    elif getattr(output, "loss", None) is not None:
        made = output.loss
    else:
        logits = getattr(output, "logits", None)
        tensors = [logits] if logits is not None else tensors_in(torch, output)
        floating = [t for t in tensors if t.is_floating_point() and t.requires_grad]
        if not floating:
            raise InvalidValue(
                "nothing that the model returns depends on a trainable parameter",
                hint="profile it with --forward-only, or return a loss function too",
            )
        made = sum(t.sum() for t in floating)
    if not isinstance(made, torch.Tensor) or made.numel() != 1 or not made.requires_grad:
        shown = list(made.shape) if isinstance(made, torch.Tensor) else type(made).__name__
        raise InvalidValue(
            f"the loss is {shown}, not one number that depends on a trainable parameter",
            hint="return one number from the loss function, or say --forward-only",
        )
    return made


def _wants_inputs(loss: Callable[..., Any]) -> bool:
    """Whether one argument is too few for it."""
    try:
        signature = inspect.signature(getattr(loss, "forward", loss))
    except (TypeError, ValueError):
        return False
    try:
        signature.bind(None)
    except TypeError:
        return True
    return False


# -- figures -------------------------------------------------------------------------------------


def _line(batches: Sequence[int], values: Sequence[int]) -> tuple[int, int, bool]:
    """Per sample, fixed, and whether the values lie on that line.

    Where they do not, all of it is per sample, as it is at the smallest batch.
    """
    slope = (values[-1] - values[0]) / (batches[-1] - batches[0])
    fixed = values[0] - slope * batches[0]
    room = _LINEAR * max(max(values), 1)
    straight = slope >= 0 and fixed >= -room
    for size, value in zip(batches, values, strict=True):
        straight = straight and abs(fixed + slope * size - value) <= room
    if not straight:
        return round(values[0] / batches[0]), 0, False
    return round(slope), max(0, round(fixed)), True


def _profile(
    torch: Any,
    model: _Model,
    layers: Mapping[Any, str],
    batches: Sequence[int],
    runs: Sequence[_Run],
    forward_only: bool,
    name: str,
) -> Profile:
    notes: list[str] = []

    def line(what: str, values: Sequence[int]) -> tuple[int, int]:
        slope, fixed, straight = _line(batches, values)
        if not straight:
            shown = ", ".join(f"{v:,} at {b}" for b, v in zip(batches, values, strict=True))
            notes.append(
                f"{what} are not in proportion to the batch ({shown}): per sample is the average "
                f"at batch {batches[0]}"
            )
        return slope, fixed

    forward, forward_fixed = line("forward FLOPs", [r.forward_flops for r in runs])
    backward, backward_fixed = line("backward FLOPs", [r.backward_flops for r in runs])
    moved, moved_fixed = line("bytes moved", [r.moved for r in runs])
    saved, saved_fixed = line("activations kept", [r.saved for r in runs])
    classes = {
        kind: _line(batches, [r.by_class[kind] for r in runs])[0]
        for kind in ("attention", "convolution")
    }
    # The peak is the highest of several moments, each on a line of its own: take the last's.
    peak = max(0, round((runs[-1].peak - runs[-2].peak) / (batches[-1] - batches[-2])))
    parameters = list(model.module.parameters())
    kinds = Counter[str]()
    for parameter in parameters:
        kinds[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    unknown = sorted(set().union(*(r.unknown for r in runs)))
    if unknown:
        notes.append(
            f"no FLOPs are counted for operators that are not PyTorch's: {', '.join(unknown)}"
        )
    if not forward and not forward_fixed:
        notes.append("no operator that counts FLOPs ran")
    return Profile(
        name=name,
        input=_described(torch, model, batches[0]),
        batch=batches[0],
        dtype=kinds.most_common(1)[0][0] if kinds else "",
        forward_only=forward_only,
        torch_version=str(torch.__version__),
        parameters=sum(p.numel() for p in parameters),
        trainable_parameters=sum(p.numel() for p in parameters if p.requires_grad),
        parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
        buffers_bytes=sum(b.numel() * b.element_size() for b in model.module.buffers()),
        forward_flops_per_sample=forward,
        backward_flops_per_sample=backward,
        matmul_flops_per_sample=max(0, forward + backward - sum(classes.values())),
        attention_flops_per_sample=classes["attention"],
        convolution_flops_per_sample=classes["convolution"],
        flops_fixed=forward_fixed + backward_fixed,
        moved_bytes_per_sample=moved,
        moved_bytes_fixed=moved_fixed,
        saved_bytes_per_sample=saved,
        saved_bytes_fixed=saved_fixed,
        peak_bytes_per_sample=peak,
        peak_bytes_fixed=max(0, runs[-1].peak - peak * batches[-1]),
        layers=tuple(_layer_profiles(model.module, layers, batches, runs)),
        warnings=tuple(notes),
    )


def _layer_profiles(
    module: Any, layers: Mapping[Any, str], batches: Sequence[int], runs: Sequence[_Run]
) -> Iterator[Layer]:
    counted: set[int] = set()
    for layer, name in (*layers.items(), (None, "(rest)")):
        every = (module if layer is None else layer).parameters()
        own = [p for p in every if id(p) not in counted]
        counted.update(map(id, own))
        made = Layer(
            name=name,
            kind=type(module if layer is None else layer).__name__,
            parameters=sum(p.numel() for p in own),
            forward_flops=_line(batches, [r.layer_flops[layer] for r in runs])[0],
            saved_bytes=_line(batches, [r.layer_saved[layer] for r in runs])[0],
        )
        if layer is not None or made.parameters or made.forward_flops or made.saved_bytes:
            yield made


def _described(torch: Any, model: _Model, batch: int) -> str:
    args, kwargs = model.inputs(torch, batch, None)
    named = [("", tensor) for tensor in tensors_in(torch, args)]
    for key, value in kwargs.items():
        named += [(key, tensor) for tensor in tensors_in(torch, value)]
    specs = []
    for key, tensor in named:
        dtype = str(tensor.dtype).removeprefix("torch.")
        specs.append(str(InputSpec(dtype, tuple(tensor.shape), key)))
    return ", ".join(specs)
