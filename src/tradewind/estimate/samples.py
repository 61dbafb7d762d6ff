"""Samples per second of models that are no transformers with a shape: what one sample costs.

    seconds a sample = FLOPs / peak + bytes / bandwidth + launches / batch + traffic · log2(devices)

Each model has these four coefficients, none negative, fitted to its measurements; the first two are
work as the chip sees it, efficiency included, so that an accelerator nobody measured is reached
through its peaks. A model that was not measured is taken from the registry's FLOPs and bytes, at
the efficiency that measured models show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from tradewind.base.csvfile import number
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.estimate import shapes, solvers
from tradewind.estimate.constants import calibration
from tradewind.estimate.measurements import FindAccelerator, none_usable
from tradewind.model import Accelerator
from tradewind.model.shape import Shape, Work

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

_SHARES = (0.4, 0.4, 0.1, 0.02)  # of a sample's time, before anything was measured
_HOLD = 0.03  # how much that counts against a row
COEFFICIENTS = ("flops", "bytes", "launch", "traffic")
# Of what a training step of a measured model takes beyond three forward passes at the peak.
_UNMEASURED = {"flops": 3 / 0.3, "bytes": 3.0, "launch": 5e-3, "traffic": 0.0}
_PASSES = 20  # over a layer's d_model values, by a transformer's forward pass
_LONGEST_LAUNCH = 1.0  # seconds; nothing real takes longer


@dataclass(slots=True)
class Samples:
    models: list[str]  # by key
    written: dict[str, Mapping[str, str]]  # a row of each
    terms: Vector  # one row a measurement: seconds a sample for each unit of a coefficient
    seconds: Vector  # measured, a sample on each device
    sources: list[str]
    accelerators: list[str]
    unsupported: Counter[str]
    rows: int

    def take(self, mask: Any) -> Samples:
        def kept(names: list[str]) -> list[str]:
            return list(compress(names, mask))

        return Samples(
            kept(self.models),
            self.written,
            self.terms[mask],
            self.seconds[mask],
            kept(self.sources),
            kept(self.accelerators),
            self.unsupported,
            self.rows,
        )


def read(rows: Sequence[Mapping[str, str]], accelerator: FindAccelerator) -> Samples:
    import numpy as np

    models, terms, seconds, sources, accelerators = [], [], [], [], []
    written: dict[str, Mapping[str, str]] = {}
    unsupported: Counter[str] = Counter()
    for row in rows:
        try:
            speed = number(row, "throughput_per_gpu")
            if not speed:
                raise InvalidValue("no throughput_per_gpu")
            chip = accelerator(row.get("accelerator", ""), None)
            term = _terms(chip, row)
        except (InvalidValue, NotFound) as error:
            unsupported[error.message] += 1
            continue
        models.append(model_key(row))
        written.setdefault(models[-1], row)
        terms.append(term)
        seconds.append(1 / speed)
        sources.append(row.get("source", ""))
        accelerators.append(chip.name)
    if not models:
        raise none_usable(unsupported)
    return Samples(
        models,
        written,
        np.array(terms),
        np.array(seconds),
        sources,
        accelerators,
        unsupported,
        len(rows),
    )


def model_key(row: Mapping[str, str]) -> str:
    """One name for a model however a source writes it; phases of other lengths are other work."""
    plain = re.sub(r"[^a-z0-9]+", "", row.get("model", "").rpartition("/")[2].lower())
    length = number(row, "seq_len")
    return f"{plain}@{length:g}" if length else plain


def _terms(chip: Accelerator, row: Mapping[str, str]) -> list[float]:
    import math

    precision = row.get("precision", "")
    half = chip.bf16_tflops or chip.fp16_tflops
    single = chip.tf32_tflops if "tf32" in precision else None
    low = "16" in precision
    peak = (half if low else None) or single or chip.fp32_tflops or half or 1.0
    batch = _batch(row.get("batch_per_gpu", ""), low=low)
    devices = number(row, "n_gpus") or 1
    width = 1 if low and half else 2
    return [
        1 / (peak * 1e12),
        width / ((chip.memory_bandwidth_gbps or 300) * 1e9),
        1 / batch if batch else 0.0,
        math.log2(devices) if devices > 1 else 0.0,
    ]


def _batch(text: str, *, low: bool) -> float | None:
    """`256`, `64k`; of two (`126 and 256`) the larger is that of 16 bits."""
    found = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*(k?)", text.lower())
    sizes = sorted(float(digits) * (1000 if k else 1) for digits, k in found)
    return (sizes[-1] if low else sizes[0]) if sizes else None


def fit(samples: Samples) -> dict[str, dict[str, float]]:
    """Coefficients by model: least error in the logarithm, odd rows weighing less.

    Where seconds a sample differ a hundredfold, a relative error would rather be far too fast than
    a little too slow.
    """
    import numpy as np

    names = np.array(samples.models)
    found: dict[str, dict[str, float]] = {}
    for name in sorted(set(samples.models)):
        mine = names == name
        solution = _fit(samples.terms[mine], np.log(samples.seconds[mine]))
        found[name] = {c: float(f"{v:.6g}") for c, v in zip(COEFFICIENTS, solution, strict=True)}
    return found


def _fit(terms: Vector, logarithms: Vector) -> Vector:
    import numpy as np

    least_squares = solvers.optimize().least_squares
    # What no row speaks of, such as the launches where no batch was told, costs nothing.
    spoken = terms.max(axis=0) > 0
    usual = np.exp(np.median(logarithms)) / np.median(terms[:, spoken], axis=0).clip(
        terms[:, spoken].max(axis=0) * 1e-3
    )
    # A little of each term is expected: what a model's rows cannot tell apart is shared.
    centre = np.log(usual * np.array(_SHARES)[spoken])

    def cost(point: Vector) -> Vector:
        seconds = terms[:, spoken] @ np.exp(point)
        held: Vector = _HOLD * (point - centre)
        return np.concatenate([np.log(seconds) - logarithms, held])

    solved: Any = least_squares(cost, centre, loss="soft_l1", f_scale=0.1, max_nfev=200)
    solution = np.zeros(len(spoken))
    solution[spoken] = np.exp(solved.x)
    return solution


def predict(
    samples: Samples,
    fitted: Mapping[str, Mapping[str, float]],
    work: Callable[[str, float | None], Work | None] = lambda name, length: None,
) -> Vector:
    """Samples a second on each device; NaN where nothing is known of the model."""
    import numpy as np

    coefficients: dict[str, Any] = {}
    for name in set(samples.models):
        known = fitted.get(name) or fitted.get(name.partition("@")[0])
        if known is None:
            row = samples.written[name]
            shape = work(row.get("model", ""), number(row, "seq_len"))
            known = _from_registry(shape) if shape else None
        coefficients[name] = [known[c] for c in COEFFICIENTS] if known else [np.nan] * 4
    table = np.array([coefficients[name] for name in samples.models])
    found: Vector = 1 / (samples.terms * table).sum(axis=1)
    return found


def coefficients(shape: Work) -> dict[str, float]:
    """Of a model of the registry: as measured, else from its FLOPs and bytes."""
    known = calibration()["samples"].get(model_key({"model": shape.name}))
    if known is None:
        return _from_registry(shape)
    found = {name: float(known[name]) for name in COEFFICIENTS}
    if found["launch"] > _LONGEST_LAUNCH:  # its rows do not tell the batch
        found["launch"] = _UNMEASURED["launch"]
    return found


def as_work(shape: Shape, length: float | None) -> Work:
    """A transformer's sequence of that length (of an image, as it is) as a sample."""
    tokens = shapes.tokens_per_image(shape) or int(length or min(shape.max_positions or 512, 512))
    touched = _PASSES * tokens * shape.d_model * (shape.layers + shape.decoder_layers)
    return Work(
        name=shape.name,
        kind="profile",
        params=shapes.parameters(shape),
        forward_flops_per_sample=tokens * shapes.forward_flops_per_token(shape, tokens).total,
        activation_bytes_per_sample=2 * touched,
        moved_bytes_per_sample=2 * touched,
        sample="image" if shape.kind == "vision" else "sample",
        input=f"{tokens} tokens",
    )


def is_measured(shape: Work) -> bool:
    return model_key({"model": shape.name}) in calibration()["samples"]


def _from_registry(shape: Work) -> dict[str, float]:
    return {
        "flops": _UNMEASURED["flops"] * shape.forward_flops_per_sample,
        "bytes": _UNMEASURED["bytes"] * shape.moved_bytes_per_sample,
        "launch": _UNMEASURED["launch"],
        "traffic": _UNMEASURED["traffic"],
    }
