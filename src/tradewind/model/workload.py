"""What must be done, and within which limits.

    Workload(
        name="support-bot-8b",
        train=Train(model="llama-3.1-8b", tokens=10**10, sequence=8192, global_batch=512),
        limits=Limits(within_s=48 * 3600, budget=Micros(2000 * 10**6)),
    )

A workload is either training (`Train`: a model and how much of it) or work known by measurement
(`Measured`: so long on such accelerators). A value that cannot be meant is refused when it is made,
with an InvalidValue that names every wrong field; the same `faults` serve the reader of files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.model import checks, globs, sensitive
from tradewind.model.checks import Fault
from tradewind.model.offer import MARKETS
from tradewind.model.secrets import parse as parse_reference
from tradewind.model.shape import Shape, Work

if TYPE_CHECKING:
    from tradewind.base.units import Micros
    from tradewind.model.offer import Market

PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "fp32", "pure-bf16")
STACKS = (
    "megatron", "nemo", "deepspeed", "nanotron", "torchtitan", "fsdp-eager", "fsdp-compile", "ddp",
    "maxtext", "xla-gpu", "xla-tpu",
)  # fmt: skip
REPORT, STOP = "report", "stop"
ON_IDLE = (REPORT, STOP)
OPTIMIZERS = (
    "adamw", "adam", "adamw-8bit", "adafactor", "lamb", "lion", "muon", "sgd", "sgd-momentum",
)  # fmt: skip
COMMITMENTS = ("1y", "3y")
SHARDINGS = ("none", "zero1", "zero2", "zero3", "hybrid")
RECOMPUTES = ("none", "selective", "full")
NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")
"""Also a label at every cloud, so no capitals and no blanks."""

_AMOUNTS = ("tokens", "samples", "epochs", "steps")
_AGREE = 0.01  # amounts given twice may differ by rounding
_NEAR = 1.05  # a batch in tokens and a power of two that may be meant: 2**20 is 1.049 million
_NOTHING: Collection[str] = frozenset()


def _values(value: Any) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _fits(name: str, patterns: Collection[str]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


_NO_ASSUMPTION = ("", 0.0)


def _assumption(text: str) -> tuple[str, float]:
    """`aws=90%` as a glob and a share; `90%` is of everything."""
    found = re.fullmatch(r"(?:(.+)=)?\s*(\d+(?:\.\d+)?)\s*%", text.strip())
    if not found or not 0 < float(found[2]) <= 100:
        return _NO_ASSUMPTION
    return (found[1] or "*").strip(), float(found[2]) / 100


def _in_place(provider: str, region: str, patterns: Collection[str]) -> bool:
    """Some regions have slashes of their own (`France/FR/EU`), so both spellings are tried."""
    return _fits(region, patterns) or _fits(f"{provider}/{region}", patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """A model and how much training. A sample is a sequence, where there are sequences.

    How much is said by at least one of `tokens`, `samples`, `steps`, and `epochs` with the size of
    the dataset; what is said twice must agree within 1 %. Of a layout, None is chosen for you.
    """

    model: str | Shape | Work
    """A known name, the path of a config.json, a profile or a shape, or a shape itself."""
    tokens: int | None = None
    samples: int | None = None
    epochs: float | None = None
    steps: int | None = None
    dataset_samples: int | None = None
    dataset_tokens: int | None = None
    sequence: int | None = None
    """Tokens; None for a model that has none, such as a ResNet."""
    global_batch: int | None = None
    """Samples in an optimizer step; either this or `global_batch_tokens`."""
    global_batch_tokens: int | None = None
    precision: str = "bf16"
    stack: str | None = None
    optimizer: str = "adamw"
    lora: int | None = None
    """The rank of adapters on frozen weights."""
    qlora: int | None = None
    """The same on weights of four bits."""
    micro_batch: int | None = None
    activation_checkpointing: str | None = None
    sharding: str | None = None
    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    flash_attention: bool = True
    measured: str | None = None
    """The path of one's own measurements, which sharpen the estimate."""

    def __post_init__(self) -> None:
        checks.raise_any("train", self.faults(_values(self)))

    @property
    def sequences_per_step(self) -> int:
        """Samples in an optimizer step. A batch in tokens is a target: the nearest whole number."""
        found = _per_step(_values(self))
        assert found is not None
        return found

    @property
    def total_samples(self) -> int:
        return ceil(next(iter(_in_samples(_values(self)).values())))

    @property
    def total_tokens(self) -> int | None:
        """None for a model without sequences."""
        if self.tokens is not None:
            return self.tokens
        return self.total_samples * self.sequence if self.sequence else None

    @property
    def total_steps(self) -> int:
        return ceil(self.total_samples / self.sequences_per_step)

    @staticmethod
    def faults(values: Mapping[str, Any], wrong: Collection[str] = _NOTHING) -> Iterator[Fault]:
        """`wrong`: fields that were given but could not be read, and are not missing."""
        seen = {name for name in values if values[name] is not None} | set(wrong)
        bad = []
        for fault in _train_ranges(values):
            bad.append(fault.field)
            yield fault
        if "model" not in seen:
            yield Fault("model", "it is missing: what is to be trained?")
        if not seen & {"global_batch", "global_batch_tokens"}:
            yield Fault(
                "global_batch",
                "it is missing: it changes what is learnt, so it is never chosen for you",
                "write 512 (sequences) or 4M tokens",
            )
        if not seen & {*_AMOUNTS, "dataset", "dataset_samples", "dataset_tokens"}:
            yield Fault(
                "tokens",
                "how much training? tokens, samples, steps, or epochs with dataset is missing",
            )
        datasets = seen & {"dataset", "dataset_samples", "dataset_tokens"}
        if "epochs" in seen and not datasets:
            yield Fault("epochs", "epochs of what? dataset is missing", "dataset: 1.28M samples")
        if datasets and "epochs" not in seen:
            yield Fault("dataset", "it counts only with epochs, which is missing", "epochs: 1")
        if {"lora", "qlora"} <= seen:
            yield Fault("qlora", "there is lora too; adapters are on whole or on 4-bit weights")
        for one, other in (
            ("global_batch", "global_batch_tokens"),
            ("dataset_samples", "dataset_tokens"),
        ):
            if values.get(one) is not None and values.get(other) is not None:
                yield Fault(one, f"there is {other} too; give one of them")
        if "sequence" not in seen:
            for name in ("tokens", "global_batch_tokens", "dataset_tokens"):
                if values.get(name) is not None:
                    field = name.removesuffix("_tokens")
                    yield Fault(field, "it counts tokens, so sequence (its length) is needed")
        if not bad:
            yield from _disagreements(values)


def _train_ranges(values: Mapping[str, Any]) -> Iterator[Fault]:
    model = values.get("model")
    if not isinstance(model, Shape | Work):
        yield from checks.text(values, "model")
    yield from checks.whole(values, "tokens", "samples", "steps", "sequence", "global_batch")
    yield from checks.whole(values, "global_batch_tokens", field="global_batch")
    yield from checks.whole(values, "dataset_samples", "dataset_tokens", field="dataset")
    yield from checks.positive(values, "epochs")
    yield from checks.whole(values, "lora", "qlora", "micro_batch", "tp", "pp", "cp", "ep")
    yield from checks.choice(values, "precision", PRECISIONS)
    yield from checks.choice(values, "stack", STACKS)
    yield from checks.choice(values, "optimizer", OPTIMIZERS)
    yield from checks.choice(values, "sharding", SHARDINGS)
    yield from checks.choice(values, "activation_checkpointing", RECOMPUTES)
    yield from checks.flag(values, "flash_attention")
    yield from checks.text(values, "measured")


def _disagreements(values: Mapping[str, Any]) -> Iterator[Fault]:
    per_step = _per_step(values)
    found = _in_samples(values)
    if len(found) > 1:
        (first, one), *others = found.items()
        for name, other in others:
            if abs(one - other) > max(_AGREE * one, per_step or 1):
                yield Fault(
                    name,
                    f"it makes {other:,.0f} samples, but {first} makes {one:,.0f}",
                    "leave one of them out",
                )
    micro = values.get("micro_batch")
    if micro is not None and per_step is not None and micro > per_step:
        yield Fault("micro_batch", f"{micro} is more than the {per_step} of a global batch")


def _per_step(values: Mapping[str, Any]) -> int | None:
    """Sequences in an optimizer step. Tokens are a target: 4M of them are likely meant to be 2**22,
    and 512 sequences can be divided among accelerators where 488 hardly can."""
    samples, tokens = values.get("global_batch"), values.get("global_batch_tokens")
    sequence = values.get("sequence")
    if samples is not None:
        return int(samples)
    if tokens is None or not sequence:
        return None
    whole = max(1, (2 * int(tokens) + int(sequence)) // (2 * int(sequence)))
    if values.get("steps") is not None and any(values.get(name) for name in _AMOUNTS[:3]):
        return whole  # what is said twice must agree as it is written
    above = 1 << whole.bit_length()
    for even in (above, above // 2):
        if max(even / whole, whole / even) <= _NEAR:
            return even
    return whole


def _in_samples(values: Mapping[str, Any]) -> dict[str, float]:
    """Every way in which the amount was given, as samples; the first of them counts."""
    given = {name: value for name, value in values.items() if value is not None}
    sequence, per_step = given.get("sequence"), _per_step(values)
    found: dict[str, float] = {}
    if "tokens" in given and sequence:
        found["tokens"] = given["tokens"] / sequence
    if "samples" in given:
        found["samples"] = given["samples"]
    if "epochs" in given and "dataset_samples" in given:
        found["epochs"] = given["epochs"] * given["dataset_samples"]
    elif "epochs" in given and "dataset_tokens" in given and sequence:
        found["epochs"] = given["epochs"] * given["dataset_tokens"] / sequence
    if "steps" in given and per_step is not None:
        found["steps"] = given["steps"] * per_step
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Work known by measurement: `hours`, or `steps` of `step_s`, on `count` of `accelerator`."""

    accelerator: str
    count: int = 1
    hours: float | None = None
    step_s: float | None = None
    steps: int | None = None
    memory_bytes: int | None = None
    """What each accelerator needs; None: as much as the one it was measured on has."""
    scales: bool = False
    """Whether more accelerators than it was measured on would make it faster."""

    def __post_init__(self) -> None:
        checks.raise_any("work", self.faults(_values(self)))

    @property
    def seconds(self) -> float:
        """How long it takes where it was measured."""
        if self.hours is not None:
            return self.hours * 3600
        assert self.step_s is not None
        assert self.steps is not None
        return self.step_s * self.steps

    @property
    def accelerator_hours(self) -> float:
        return self.seconds / 3600 * self.count

    @staticmethod
    def faults(values: Mapping[str, Any], wrong: Collection[str] = _NOTHING) -> Iterator[Fault]:
        seen = {name for name in values if values[name] is not None} | set(wrong)
        if not seen & {"on", "accelerator"}:
            yield Fault("on", "it is missing: measured on which accelerators?", "on: 8xA100-80GB")
        stepped = seen & {"step", "step_s", "steps"}
        if "hours" in seen and stepped:
            yield Fault("hours", "there is step too; give hours, or step and steps")
        elif not stepped and "hours" not in seen:
            yield Fault("hours", "how long? hours, or step and steps, is missing")
        elif stepped and "steps" not in stepped:
            yield Fault("step", "how many of them? steps is missing")
        elif stepped and len(stepped) < 2:
            yield Fault("steps", "how long is one? step is missing", "step: 1.8s")
        yield from checks.text(values, "accelerator")
        yield from checks.whole(values, "count", field="on")
        yield from checks.positive(values, "hours")
        yield from checks.positive(values, "step_s", field="step")
        yield from checks.whole(values, "steps")
        yield from checks.whole(values, "memory_bytes", field="memory")
        yield from checks.flag(values, "scales")


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What the work reads, and where it lies: moving it takes time and money."""

    uri: str
    size_bytes: int | None = None
    provider: str | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        checks.raise_any("data", self.faults(_values(self)))

    @staticmethod
    def faults(values: Mapping[str, Any], wrong: Collection[str] = _NOTHING) -> Iterator[Fault]:
        if values.get("uri") is None and "uri" not in wrong:
            yield Fault("uri", "it is missing: where is the data?", "uri: s3://bucket/folder")
        yield from checks.text(values, "uri", "region")
        yield from checks.whole(values, "size_bytes", field="size")
        if values.get("region") is not None and values.get("provider") is None:
            yield Fault("region", "whose region? write the provider before it", "aws/eu-west-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How often state is saved. None: as often as interruptions make it worth while."""

    every_s: int | None = None
    keep: int = 3
    size_bytes: int | None = None
    """None: what the model and its optimizer come to."""

    def __post_init__(self) -> None:
        checks.raise_any("checkpoint", self.faults(_values(self)))

    @staticmethod
    def faults(values: Mapping[str, Any], wrong: Collection[str] = _NOTHING) -> Iterator[Fault]:
        yield from checks.whole(values, "every_s", field="every")
        yield from checks.whole(values, "keep")
        yield from checks.whole(values, "size_bytes", field="size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a plan must keep to. None means no limit; names take globs, and capitals do not matter.

    A region is `eu-*` of any provider or `aws/eu-west-1` of one. What `exclude` matches (a provider
    or a region, written as in `regions`) is out, whatever else is allowed.
    """

    deadline: datetime | None = None
    """A moment with a zone; or `within_s`, from whenever the work is started."""
    within_s: int | None = None
    budget: Micros | None = None
    confidence: float = 0.8
    """The chance of meeting the deadline that is wanted."""
    hard: bool = False
    """Past the deadline the work is worth nothing: stop."""
    providers: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    markets: tuple[Market, ...] | None = None
    accelerators: tuple[str, ...] | None = None
    max_nodes: int | None = None
    max_accelerators: int | None = None
    """Of all machines together."""
    commit: str | None = None
    """`1y` or `3y`: prices that ask for a new commitment of that length compete too."""
    assume_capacity: tuple[str, ...] | None = None
    """How likely machines are to be had, instead of what we believe: `90%` of all, `aws=90%`,
    `aws/us-east-1=50%` or `p5.48xlarge=50%` of some; the last that fits counts."""

    def __post_init__(self) -> None:
        checks.raise_any("limits", self.faults(_values(self)))

    def deadline_at(self, now: datetime) -> datetime | None:
        """The moment by which work started `now` must be done."""
        if self.within_s is not None:
            return now + timedelta(seconds=self.within_s)
        return self.deadline

    def allows(self, provider: str, region: str) -> bool:
        if self.exclude and (
            _fits(provider, self.exclude) or _in_place(provider, region, self.exclude)
        ):
            return False
        if self.providers is not None and not _fits(provider, self.providers):
            return False
        return self.regions is None or _in_place(provider, region, self.regions)

    def allows_market(self, market: str) -> bool:
        return self.markets is None or market in self.markets

    def assumed(self, provider: str, region: str, instance_type: str) -> float | None:
        """The chance to have it that the user takes for given; None where that is left to us."""
        names = (provider, f"{provider}/{region}", f"{provider}/{instance_type}", instance_type)
        found = None
        for text in self.assume_capacity or ():
            glob, share = _assumption(text)
            if any(_fits(name, (glob,)) for name in names):
                found = share
        return found

    def allows_accelerator(self, name: str) -> bool:
        return self.accelerators is None or _fits(name, self.accelerators)

    @staticmethod
    def faults(values: Mapping[str, Any], wrong: Collection[str] = _NOTHING) -> Iterator[Fault]:
        deadline = values.get("deadline")
        if deadline is not None and not isinstance(deadline, datetime):
            yield Fault("deadline", f"{checks.shown(deadline)} is no moment")
        elif deadline is not None and deadline.utcoffset() is None:
            yield Fault("deadline", "it has no time zone", "2026-12-01T08:00+01:00")
        if deadline is not None and values.get("within_s") is not None:
            yield Fault("deadline", "it is both a moment and a length of time")
        # A hundred years: beyond it a moment cannot be reckoned, and nobody waits.
        yield from checks.whole(values, "within_s", field="deadline")
        within = values.get("within_s")
        if isinstance(within, int) and within > 100 * 366 * 86_400:
            yield Fault("deadline", "it is more than a hundred years away")
        yield from checks.whole(values, "budget")
        yield from checks.flag(values, "hard")
        dated = values.get("within_s") is not None or deadline is not None or "deadline" in wrong
        if values.get("hard") and not dated:
            yield Fault("hard", "what is hard? deadline is missing", "deadline: 48h")
        confidence = values.get("confidence")
        if confidence is not None and not (isinstance(confidence, float) and 0 < confidence < 1):
            yield Fault("confidence", f"{checks.shown(confidence)} is not between 0 % and 100 %")
        yield from checks.listed(
            values, "providers", "exclude", "regions", "markets", "accelerators"
        )
        yield from checks.whole(values, "max_nodes", "max_accelerators")
        for market in values.get("markets") or ():
            if market not in MARKETS:
                yield Fault("markets", f"{market!r} is none of {', '.join(MARKETS)}")
        yield from checks.choice(values, "commit", COMMITMENTS)
        yield from checks.listed(values, "assume_capacity")
        for text in values.get("assume_capacity") or ():
            if isinstance(text, str) and _assumption(text) is _NO_ASSUMPTION:
                yield Fault(
                    "assume_capacity",
                    f"{text!r} is no share above 0 % and up to 100 %",
                    "90%, or aws=90%, or p5.48xlarge=50%",
                )
        providers, exclude = values.get("providers"), values.get("exclude")
        if providers and exclude and all(_fits(name, exclude) for name in providers):
            yield Fault("exclude", "every provider that is allowed is excluded too")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What runs on the machines: `setup` once on each, then `command`."""

    command: str
    setup: str | None = None
    setup_s: int | None = None
    """How long setting up takes, from a machine that has booted to the first step."""
    max_duration_s: int | None = None
    """How long its machines may be up, one leg after another."""
    idle_s: int = 1800
    """A job that makes no step and uses nothing for so long is idle."""
    on_idle: str = REPORT
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the job, which everybody may read who may read the store."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables whose values are elsewhere, each with where (model/secrets.py)."""
    not_secret: tuple[str, ...] | None = None
    """Of `env`, `command` and `setup`, what looks like a secret and is none."""
    outputs: tuple[str, ...] | None = None
    """Files that the job writes into its folder and that are brought into the run's store."""
    include: tuple[str, ...] | None = None
    """Files of its folder that are sent though an ignore file names them (model/globs.py)."""

    def __post_init__(self) -> None:
        checks.raise_any("run", self.faults(_values(self)))

    @staticmethod
    def faults(values: Mapping[str, Any], wrong: Collection[str] = _NOTHING) -> Iterator[Fault]:
        if values.get("command") is None and "command" not in wrong:
            yield Fault("command", "it is missing: what is to be run?", "command: python train.py")
        yield from checks.text(values, "command", "setup", most=100_000)
        yield from checks.whole(values, "setup_s", field="setup_time")
        yield from checks.whole(values, "max_duration_s", field="max_duration")
        yield from checks.whole(values, "idle_s", field="idle")
        yield from checks.choice(values, "on_idle", ON_IDLE)
        yield from checks.listed(values, "not_secret", "include", "outputs")
        yield from _patterns(values, "include")
        yield from _patterns(values, "outputs")
        env, secrets = values.get("env") or {}, values.get("secrets") or {}
        for table, names in (("env", env), ("secrets", secrets)):
            for name in names:
                if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                    yield Fault(table, f"{name!r} is not the name of a variable")
                elif name.startswith("TRADEWIND_"):
                    yield Fault(table, f"{name} is ours: names that begin so are reserved")
        for name, reference in secrets.items():
            if name in env:
                yield Fault("secrets", f"{name} is in env too")
            try:
                parse_reference(reference)
            except InvalidValue as error:
                yield Fault("secrets", f"{name}: {error.message}", error.hint or "")
        yield from _exposed(values)


def _patterns(values: Mapping[str, Any], name: str) -> Iterator[Fault]:
    given = values.get(name)
    if not isinstance(given, tuple):
        return
    if len(given) > globs.MOST:
        yield Fault(name, f"it has {len(given):,} patterns, and at most {globs.MOST} are taken")
    for pattern in given:
        wrong = globs.problem(pattern) if isinstance(pattern, str) and pattern else ""
        if wrong:
            yield Fault(name, f"{checks.shown(pattern)}: {wrong}", "data/*.bin")


def _exposed(values: Mapping[str, Any]) -> Iterator[Fault]:
    """What looks like a secret, where all who may read the store would read it. The message names
    it, and does not repeat it."""
    fine = values.get("not_secret") or ()
    for name, value in (values.get("env") or {}).items():
        found = sensitive.variable(name, str(value))
        if found and name not in fine:
            yield Fault("env", f"{name} looks like {found}", _SECRETS_HINT.format(name))
    for name in ("command", "setup"):
        found = sensitive.shape(str(values.get(name) or ""))
        if found and name not in fine:
            yield Fault(name, f"it holds what looks like {found}", _SECRETS_HINT.format(name))


_SECRETS_HINT = (
    "all who may read the store could read it; name where it is in run.secrets, or, if it is not a"
    " secret, not_secret: [{}]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Exactly one of `train` and `work` is set."""

    name: str = "workload"
    train: Train | None = None
    work: Measured | None = None
    data: Data | None = None
    checkpoint: Checkpoint = Checkpoint()
    limits: Limits = Limits()
    run: Job | None = None

    def __post_init__(self) -> None:
        checks.raise_any("workload", self.faults(_values(self)))

    @property
    def total_tokens(self) -> int | None:
        return self.train.total_tokens if self.train else None

    @property
    def total_steps(self) -> int | None:
        """None for work that is known in hours."""
        if self.train:
            return self.train.total_steps
        return self.work.steps if self.work else None

    @property
    def sequences_per_step(self) -> int | None:
        return self.train.sequences_per_step if self.train else None

    @staticmethod
    def faults(values: Mapping[str, Any], wrong: Collection[str] = _NOTHING) -> Iterator[Fault]:
        seen = {name for name in values if values[name] is not None} | set(wrong)
        name = values.get("name")
        if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
            yield Fault(
                "name",
                f"{checks.shown(name)} is no name for every cloud",
                "at most 63 of a-z 0-9 . _ -, a letter or digit at both ends",
            )
        if {"train", "work"} <= seen:
            yield Fault("work", "there is train too; a workload is one of them")
        elif not {"train", "work"} & seen:
            yield Fault("train", "train (or work, if it was measured) is missing: what is to do?")
        for name, kind in _PARTS.items():
            part = values.get(name)
            if part is not None and not isinstance(part, kind):
                yield Fault(name, f"{checks.shown(part)} is no {kind.__name__}")


_PARTS: dict[str, type] = {
    "train": Train, "work": Measured, "data": Data, "checkpoint": Checkpoint, "limits": Limits,
    "run": Job,
}  # fmt: skip
