"""PyTorch's machinery: inside `faked`, a tensor is a shape and costs nothing.

All tensors are CPU ones, whatever the code asks for, and operators that a CPU runs otherwise than
an accelerator (dropout, RMS norm, attention with dropout) are made to run like there: the profile
of a model is the same on every machine. What is changed in PyTorch is put back on leaving.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tradewind.torch.profiling.meter import arguments


@contextmanager
def faked(torch: Any) -> Iterator[None]:
    """Inside, tensors are shapes on the CPU, and behave like on an accelerator."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with ExitStack() as stack:

        def set_for_now(owner: Any, name: str, value: Any) -> None:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message=".*NumPy.*|.*data pointer of FakeTensor.*")
        # It logs a traceback for what it raises anyway.
        log = logging.getLogger("torch._subclasses.fake_tensor")
        stack.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        # An LSTM would be one operator of the CPU's library, whose FLOPs nobody counts.
        stack.callback(torch._C._set_mkldnn_enabled, torch._C._get_mkldnn_enabled())
        torch._C._set_mkldnn_enabled(False)
        autocast = torch.amp.autocast_mode.autocast
        set_for_now(autocast, "__init__", _autocasting(torch, autocast.__init__))
        # It draws again until every value is within bounds.
        set_for_now(torch.nn.init, "_no_grad_trunc_normal_", lambda tensor, *_, **__: tensor)
        set_for_now(torch.nn.Module, "_apply", _converting(torch))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(_as_on_an_accelerator(torch))
        yield


def _autocasting(torch: Any, original: Callable[..., None]) -> Callable[..., None]:
    """An autocast for another device is one for ours, which would ignore it."""

    def init(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        # The default type is the device's: a GPU's is half precision.
        if device_type != "cpu" and not args and kwargs.get("dtype") is None:
            kwargs = {**kwargs, "dtype": torch.float16}
        original(self, "cpu", *args, **kwargs)

    return init


def dispatching(torch: Any, seen: Callable[..., None] | None, *, building: bool = False) -> Any:
    """A mode that tells `seen` of every operator, and makes every new tensor a CPU one.

    On a PyTorch without CUDA, autograd ends the process at the first CUDA tensor, even a fake one.
    While building, a linspace is real and what is computed from real tensors too: half of all
    vision models take the rate of each layer from one, with `.item()`.
    """
    from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
    from torch.utils._python_dispatch import TorchDispatchMode

    cpu, device_of = torch.device("cpu"), torch.ops.prim.device.default
    linspace = torch.ops.aten.linspace.default

    def dispatch(self: Any, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operator is device_of:  # more than half of all that comes by
            return cpu
        kwargs = kwargs or {}
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": cpu}
        if building:
            given = list(arguments(torch, (*args, *kwargs.values())))
            real = given and not any(isinstance(tensor, FakeTensor) for tensor in given)
            if real or operator is linspace:
                with unset_fake_temporarily():
                    return operator(*args, **kwargs)
        output = operator(*args, **kwargs)
        if seen is not None:
            seen(operator, args, kwargs, output)
        return output

    # No class statement: its base is unknown wherever types are checked without PyTorch.
    mode: Any = type(
        "Dispatching",
        (TorchDispatchMode,),
        {"__torch_dispatch__": dispatch, "supports_higher_order_operators": True},
    )
    return mode()


def _as_on_an_accelerator(torch: Any) -> Any:
    """A mode for the functions that a CPU computes by other operators than an accelerator."""
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode

    def dropout(tensor: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        # A CPU would keep a mask of the tensor's own type, a GPU keeps one of bytes.
        return torch.native_dropout(tensor, p, training)[0] if training and p else tensor

    def attention(*args: Any, **kwargs: Any) -> Any:
        # A CPU has no fused attention with dropout. The mask costs next to nothing in one.
        args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
        kwargs = {key: value for key, value in kwargs.items() if key != "dropout_p"}
        return functional.scaled_dot_product_attention(*args, **kwargs)

    def multi_head(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 10 and kwargs.get("need_weights") is False:  # then it is fused
            args = (*args[:10], 0.0, *args[11:])
        return functional.multi_head_attention_forward(*args, **kwargs)

    def rms_norm(
        tensor: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
    ) -> Any:
        # A CPU has no kernel for it, a GPU has; it keeps and moves what a layer norm's does.
        if weight is not None and weight.dtype != tensor.dtype:
            return functional.rms_norm(tensor, normalized_shape, weight, eps)
        return torch.native_layer_norm(tensor, normalized_shape, weight, None, eps or 1e-6)[0]

    def to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        places = (str, torch.device, int)
        args = tuple("cpu" if isinstance(arg, places) else arg for arg in args[:1]) + args[1:]
        return tensor.to(*args, **kwargs)

    def here(tensor: Any, *_: Any, **__: Any) -> Any:
        return tensor

    instead: dict[Any, Callable[..., Any]] = {
        functional.dropout: dropout,
        torch.dropout: dropout,
        functional.scaled_dot_product_attention: attention,
        functional.multi_head_attention_forward: multi_head,
        functional.rms_norm: rms_norm,
        torch.Tensor.to: to,
        torch.Tensor.cuda: here,
        torch.Tensor.pin_memory: here,
    }

    def function(self: Any, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": "cpu"}
        return instead.get(called, called)(*args, **kwargs)

    mode: Any = type("Accelerated", (TorchFunctionMode,), {"__torch_function__": function})
    return mode()


def _converting(torch: Any) -> Callable[..., Any]:
    """`Module._apply` for fake parameters, which PyTorch's own cannot swap in place (2.13).

    A parameter that two modules share stays shared: its old self is remembered by what it became.
    """
    became: dict[int, tuple[Any, Any]] = {}

    def convert(self: Any, change: Callable[[Any], Any], recurse: bool = True) -> Any:
        for child in self.children() if recurse else ():
            child._apply(change)
        for key, old in self._parameters.items():
            if old is None:
                continue
            if id(old) not in became:
                with torch.no_grad():
                    new = change(old)
                if new is old:  # and the next conversion may yet change it
                    continue
                new = torch.nn.Parameter(new, requires_grad=old.requires_grad)
                # The old one is held, so that its id is not another's.
                became[id(old)] = (old, new)
            self._parameters[key] = became[id(old)][1]
        for key, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[key] = change(buffer)
        return self

    return convert


def cpu_attention(torch: Any) -> dict[Any, Callable[..., int]]:
    """FLOPs of the CPU's fused attention, by PyTorch's own rule for the GPU's."""

    def forward(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
        return int(2 * q[0] * q[1] * q[2] * k[2] * (q[3] + v[3]))

    def backward(_grad: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
        # The scores are computed again.
        return int(2 * q[0] * q[1] * q[2] * k[2] * (3 * q[3] + 2 * v[3]))

    aten = torch.ops.aten
    return {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,
    }
