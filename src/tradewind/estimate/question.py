"""What is asked: a model, accelerators, a batch, and as much of a layout as is decided.

`check` refuses what cannot be, naming the field and what is legal, before anything is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.base.errors import InvalidValue
from tradewind.estimate import hardware, stacks
from tradewind.estimate.columns import Model
from tradewind.estimate.optimizers import STATE
from tradewind.estimate.shapes import tokens_per_image
from tradewind.model import Accelerator
from tradewind.model.profile import Profile
from tradewind.model.shape import Shape, Work

# `hybrid` shards everything, but only inside a node.
SHARDINGS = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3, "hybrid": 3}
SHARDING_NAMES = {"ddp": "none", "fsdp": "zero3", "hsdp": "hybrid"}
RECOMPUTES = {"none": 0, "selective": 1, "full": 2}
LONGEST = 100_000_000  # tokens in a sequence
LARGEST_BATCH = 10**9
MOST_DEVICES = 1_000_000
USUAL_SEQUENCE, USUAL_BATCH = 4096, 256
USUAL_TOKENS = 65_536  # in a step, of models whose samples are tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`None` where it is to be chosen. Batches are in samples: sequences, images …"""

    model: Model
    accelerator: Accelerator
    per_node: int = 1
    nodes: int = 1
    sequence: int | None = None  # the usual 4096 or the model's longest; 1 where there is none
    global_batch: int | None = None  # the usual, or a little more where that does not divide
    precision: str | None = None  # bf16, or the nearest that the chip has
    stack: str | None = None
    optimizer: str = "adamw"
    lora: int | None = None  # rank of adapters; the weights themselves are frozen
    quantised: bool = False  # the frozen weights are held in 4 bits (QLoRA)
    flash: bool = True
    tp: int | None = None
    pp: int | None = None
    vp: int = 1  # chunks of an interleaved pipeline on each device
    cp: int | None = None
    ep: int | None = None
    micro_batch: int | None = None
    sharding: str | None = None
    recompute: str | None = None
    network_gbps: float | None = None  # for each accelerator

    @property
    def devices(self) -> int:
        return self.per_node * self.nodes

    @property
    def length(self) -> int:
        """Tokens in a sequence; 1 where a sample is no sequence."""
        model = self.model
        if not isinstance(model, Shape):
            return 1
        if model.kind == "vision":
            return tokens_per_image(model)
        if self.sequence is not None:
            return self.sequence
        return min(USUAL_SEQUENCE, model.max_positions or USUAL_SEQUENCE)

    @property
    def batch(self) -> int:
        """Samples in an optimizer step."""
        if self.global_batch is not None:
            return self.global_batch
        usual = USUAL_TOKENS if self.sample == "token" else USUAL_BATCH
        return -(-usual // self.devices) * self.devices

    @property
    def sample(self) -> str:
        """What a batch is counted in."""
        if isinstance(self.model, Shape):
            return "image" if self.model.kind == "vision" else "sequence"
        return self.model.sample if isinstance(self.model, Work) else "sample"

    @property
    def kind_of_number(self) -> str:
        return self.precision or hardware.best_precision(self.accelerator)

    @property
    def software(self) -> str:
        return (
            stacks.taken_as(self.stack, self.accelerator)
            if self.stack is not None
            else stacks.usual(self.accelerator)
        )


def check(q: Question) -> None:
    """Raises InvalidValue for what no layout could mend."""
    hardware.check_precision(q.accelerator, q.kind_of_number)
    stacks.taken_as(q.software, q.accelerator)
    _within("the number of accelerators in a node", q.per_node, 1, MOST_DEVICES)
    _within("the number of nodes", q.nodes, 1, MOST_DEVICES // q.per_node)
    _within(f"the global batch ({q.sample}s)", q.batch, 1, LARGEST_BATCH)
    if q.micro_batch is not None:
        _within("the micro-batch", q.micro_batch, 1, LARGEST_BATCH)
        if q.micro_batch > q.batch:
            raise InvalidValue(
                f"the micro-batch ({q.micro_batch}) is larger than the global batch ({q.batch})",
                hint=f"a micro-batch of 1 to {q.batch}, or a larger global batch",
            )
    _one_of("sharding", q.sharding, SHARDINGS)
    _one_of("recompute", q.recompute, RECOMPUTES)
    _one_of("optimizer", q.optimizer, STATE)
    if q.network_gbps is not None and not 0 < q.network_gbps <= 1e6:
        raise InvalidValue(f"a network of {q.network_gbps:g} Gbit/s cannot be")
    if q.quantised and q.lora is None:
        raise InvalidValue("quantised weights cannot be trained", hint="give lora a rank as well")
    if isinstance(q.model, Shape):
        _check_shape(q, q.model)
    else:
        _check_work(q, q.model)


def _check_shape(q: Question, shape: Shape) -> None:
    if q.sequence is not None:
        _within("the sequence", q.sequence, 1, LONGEST)
        if shape.kind == "vision" and q.sequence != q.length:
            raise InvalidValue(
                f"the sequence is {q.sequence}, but an image is {q.length} tokens to {shape.name}",
                hint="leave --seq out",
            )
    layers = shape.layers + shape.decoder_layers
    for name in ("tp", "pp", "vp", "cp", "ep"):
        degree = getattr(q, name)
        if degree is None:
            continue
        _within(name, degree, 1, MOST_DEVICES)
        if degree > q.devices and name != "vp":
            raise InvalidValue(
                f"{name} is {degree}, but there {_accelerators(q.devices)}",
                hint=f"{name} may be 1 to {q.devices}; --nodes gives more",
            )
    _divides(shape.n_heads, q.tp, "tp", "attention heads", q.devices)
    if q.tp and not _kv_right(shape, q.tp):
        raise InvalidValue(
            f"tp is {q.tp}, which goes not evenly into {shape.n_kv_heads} key-value heads",
            hint=f"tp may be {_listed([n for n in tensor_degrees(shape) if n <= q.devices])}",
        )
    _divides(layers, q.pp, "pp", "layers", q.devices)
    if q.vp > 1:
        if not q.pp or q.pp == 1:
            raise InvalidValue("vp is for pipelines, and pp is not given", hint="for example pp 4")
        _divides(layers // q.pp, q.vp, "vp", "layers on each stage", layers)
    _divides(q.length, q.cp, "cp", "tokens of a sequence", q.devices)
    if q.ep and q.ep > 1 and not shape.experts:
        raise InvalidValue(f"ep is {q.ep}, but {shape.name} has no experts", hint="leave ep out")
    if shape.experts:
        _divides(shape.experts, q.ep, "ep", "experts", q.devices)
    if q.lora is not None:
        _within("the rank of LoRA", q.lora, 1, shape.d_model)


def _check_work(q: Question, model: Work | Profile) -> None:
    for name in ("tp", "pp", "vp", "cp", "ep"):
        if (getattr(q, name) or 1) > 1:
            raise InvalidValue(
                f"{name} is {getattr(q, name)}, but {model.name} is known by what a sample costs, "
                "not by its layers, and cannot be split",
                hint="data parallelism and sharding are for every model; give a config.json or a "
                "shape if it is a transformer",
            )
    if q.sequence is not None and q.sequence != 1:
        raise InvalidValue(
            f"the sequence is {q.sequence}, but {model.name} is known by what a sample costs "
            f"({model.input})",
            hint="leave --seq out",
        )
    if q.lora is not None or q.quantised:
        raise InvalidValue(
            f"LoRA is estimated for transformers with a shape, and {model.name} has none",
            hint="freeze the weights in the module itself and profile it",
        )
    if "fp8" in q.kind_of_number:
        raise InvalidValue(
            f"fp8 is estimated for transformers with a shape, and {model.name} has none",
            hint="precision may be bf16, fp16 or fp32",
        )


def _accelerators(number: int) -> str:
    return "is 1 accelerator" if number == 1 else f"are {number} accelerators"


def _kv_right(shape: Shape, tp: int) -> bool:
    return not (shape.n_kv_heads % tp and tp % shape.n_kv_heads)


def tensor_degrees(shape: Shape) -> list[int]:
    """Degrees of tensor parallelism that its heads allow."""
    return [n for n in divisors(shape.n_heads) if _kv_right(shape, n)]


def divisors(whole: int) -> list[int]:
    small = [n for n in range(1, int(whole**0.5) + 1) if not whole % n]
    return sorted({*small, *(whole // n for n in small)})


def _within(name: str, value: int, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        shown = f"{value:,}" if isinstance(value, int | float) else repr(value)
        raise InvalidValue(f"{name} is {shown}, not a whole number from {least} to {most:,}")


def _one_of(name: str, value: str | None, legal: dict[str, int] | dict[str, float]) -> None:
    if value is not None and value not in legal:
        raise InvalidValue(f"{name} is {value!r}", hint=f"one of {', '.join(legal)}")


def _divides(whole: int, by: int | None, name: str, what: str, most: int) -> None:
    if by and whole % by:
        raise InvalidValue(
            f"{name} is {by}, which does not divide {whole:,} {what}",
            hint=f"{name} may be {_listed([n for n in divisors(whole) if n <= most])}",
        )


def _listed(numbers: list[int]) -> str:
    shown = [str(n) for n in numbers]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:9], "…", shown[-1]])
