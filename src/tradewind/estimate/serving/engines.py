"""Inference engines as stacks: what they are called, and what they share. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from tradewind.base.errors import InvalidValue


class Engine(NamedTuple):
    name: str
    kin: tuple[str, ...]  # parts of names that mean it too
    eight_bit_cache: bool  # keeps the cache in 8 bits where weights have 8 or fewer
    by_layers: bool = (
        False  # several accelerators hold a part of the layers each, one after another
    )


ENGINES = (
    Engine("trtllm", ("trtllm", "tensorrt-llm", "tensorrt_llm", "tensorrt", "trt", "nim"), True),
    Engine("sglang", ("sglang",), False),
    Engine("vllm", ("vllm", "aphrodite"), False),
    Engine("llama.cpp", ("llama.cpp", "llamacpp", "ollama", "ggml", "koboldcpp"), False, True),
    Engine("atom", ("atom",), True),
    Engine("tgi", ("tgi", "text-generation-inference"), False),
    Engine("lmdeploy", ("lmdeploy", "turbomind"), False),
    Engine("deepspeed", ("deepspeed", "mii"), False),
    Engine("habana", ("habana", "gaudi", "synapse"), False),
    Engine("mlc-llm", ("mlc", "exllama", "tvm"), False),
    Engine("jetstream", ("jetstream", "maxtext", "saxml", "jax"), True),
    Engine("neuron", ("neuron",), False),
    Engine("sambaflow", ("samba",), False),
    Engine("pytorch", ("pytorch", "torch", "transformers", "hf", "cuda", "rocm"), False),
    Engine("onnxruntime", ("onnx",), False),
)
_NVIDIA = ("pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")
# Families that engines were written for, where it is not NVIDIA's alone; elsewhere they are ports.
_HOMES = {
    "llama.cpp": (*_NVIDIA, "apple"), "atom": ("cdna",), "sambaflow": ("rdu",),
    "jetstream": ("tpu",),
}  # fmt: skip
_EVERYWHERE = ("mlc-llm", "onnxruntime")  # compiled for whatever there is
_BY_NAME = {engine.name: engine for engine in ENGINES}
_ORDER = [e for e in ENGINES if e.name in ("habana", "neuron")]
_ORDER += [e for e in ENGINES if e not in _ORDER]


def nearest(text: str) -> Engine:
    """The engine that a published name speaks of; plain PyTorch where it says nothing we know."""
    plain = re.sub(r"[\s_]+", "-", text.strip().lower())
    for engine in _ORDER:
        if any(word in plain for word in engine.kin):
            return engine
    return _BY_NAME["pytorch"]


def named(text: str) -> Engine:
    """As `nearest`, but InvalidValue, with all names, for one that we do not know."""
    found = nearest(text)
    plain = text.strip().lower()
    if plain != found.name and not any(word in plain for word in found.kin):
        raise InvalidValue(f"no engine is called {text!r}", hint=f"one of {', '.join(_BY_NAME)}")
    return found


def away(engine: str, family: str) -> bool:
    """Whether it is a port there: on accelerators that it was not written for."""
    return family not in _HOMES.get(engine, _NVIDIA) and engine not in _EVERYWHERE
