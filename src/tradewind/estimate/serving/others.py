"""Models that do not generate text: requests a second, from published points by their arithmetic.

The rate is the accelerator's peak over the FLOPs of one request, times what measurements say of the
task, the accelerator, the precision and the mode; parts as in `constants.py`, held to nought, so
that a task or a chip that nobody measured falls back to its kin. Linear, so fitted in one step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from tradewind.base.csvfile import number
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.estimate import registry, shapes
from tradewind.estimate.serving import chips, engines, formats
from tradewind.estimate.serving.rows import FindChip, is_language, usable
from tradewind.model.shape import Shape, Work

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

# FLOPs of one request, where the registry has no model of that name (MLPerf's tasks among them).
GFLOPS = {
    "bert": 230.0, "resnet50": 8.2, "resnet": 8.2, "retinanet": 300.0, "rnnt": 12.0, "dlrm": 0.01,
    "dlrm-v2": 0.03, "3d-unet": 4000.0, "sdxl": 240_000.0, "stable-diffusion-xl": 240_000.0,
    "unet": 80.0, "vgg11": 15.2, "rgat": 1.0, "whisper": 1500.0, "ssd-mobilenet": 2.5,
    "ssd-resnet34": 430.0, "mobilenet": 1.1, "gnmt": 10.0, "yolov5": 17.0, "pointpainting": 500.0,
    "albert": 22.0, "camembert": 22.0, "distilbert": 11.0, "electra": 22.0, "clip": 30.0,
    "multimodal-perceiver": 60.0, "vision-perceiver-learned": 820.0,
    "vision-perceiver-fourier": 1940.0, "vision-perceiver-conv": 740.0, "3d-unet-99": 4000.0,
    "stable-diffusion": 30_000.0, "sd3": 200_000.0, "flux": 1_500_000.0, "wav2vec2": 180.0,
    "minilm": 3.0, "all-minilm-l6-v2": 3.0, "squeezenet": 0.7, "googlenet": 3.0, "yolov5s": 16.5,
    "yolov8": 165.0, "yolov8n": 8.7, "ssd": 430.0, "segformer": 17.0, "sam": 740.0,
    "deeplabv3": 330.0, "pixart alpha": 280_000.0, "pixart sigma": 280_000.0,
    "bge": 80.0, "e5": 80.0, "gte": 80.0,
    "clip-vit-base-patch32": 9.0, "clip-vit-large-patch14": 160.0,
}  # fmt: skip
_TOKENS = 128  # of a text, where nobody says how long it is
_KINDS: dict[str, float] = {
    "base": 1.0, "task": 0.8, "family": 0.5, "chip": 0.3, "mode": 0.4, "precision": 0.4,
    "engine": 0.5, "task+mode": 0.3, "task+family": 0.25, "task+chip": 0.12,
    "family+precision": 0.2,
    "batch": 0.3, "task batch": 0.2, "many": 0.2,
}  # fmt: skip
_HOLD = 0.1


@dataclass(slots=True)
class Requests:
    """Of each row its place in the kinds, and what was measured."""

    places: list[dict[str, tuple[str, float]]]
    expected: list[float]  # logarithm of requests/s at the peak
    measured: list[float]  # requests/s
    sources: list[str]
    unsupported: Counter[str]
    silent: int  # rows that can be answered and give no rate to compare with
    rows: int


def read(rows: Sequence[Mapping[str, str]], chip: FindChip) -> Requests:
    import math

    found = Requests([], [], [], [], Counter(), 0, 0)
    for row in rows:
        if not usable(row) or is_language(row):
            continue
        found.rows += 1
        try:
            expected, places = _case(row, chip)
            rate = number(row, "requests_per_s") or number(row, "output_tokens_per_s")
        except (InvalidValue, NotFound) as error:
            found.unsupported[error.message] += 1
            continue
        if not rate:
            found.silent += 1
            continue
        found.places.append(places)
        found.expected.append(math.log(expected))
        found.measured.append(rate)
        found.sources.append(row.get("source", ""))
    return found


def flops(name: str) -> float:
    """Of one request."""
    plain = name.lower().rsplit("/", 1)[-1]
    for known in (plain, plain.split("-")[0]):
        if known in GFLOPS:
            return GFLOPS[known] * 1e9
    model = registry.find(name)
    if isinstance(model, Work):
        return model.forward_flops_per_sample
    assert isinstance(model, Shape)
    tokens = shapes.tokens_per_image(model) or _TOKENS
    return sum(shapes.forward_flops_per_token(model, tokens)) * tokens


def _case(row: Mapping[str, str], chip: FindChip) -> tuple[float, dict[str, tuple[str, float]]]:
    import math

    accelerator = chip(row.get("accelerator", ""))
    said = row.get("weight_precision", "").strip('" ').split(",")[0].strip() or "fp16"
    weights = formats.named("int8" if said == "int" else said)
    # What is called fp32 on these is done in 16 bits.
    rate = "bf16" if weights == "fp32" else formats.FORMATS[weights].rate
    count = number(row, "n_accelerators") or 1.0
    task, mode = row.get("model", "").lower(), row.get("mode", "")
    batch = math.log2(max(number(row, "batch") or 1.0, 1.0)) / 6
    family, precision = chips.family(accelerator), formats.FORMATS[weights].group
    places = {
        "base": ("any", 1.0), "task": (task, 1.0), "family": (family, 1.0),
        "chip": (accelerator.name, 1.0), "mode": (mode, 1.0), "precision": (precision, 1.0),
        "engine": (engines.nearest(row.get("engine", "")).name, 1.0),
        "task+mode": (f"{task} {mode}", 1.0), "task+family": (f"{task} {family}", 1.0),
        "task+chip": (f"{task} {accelerator.name}", 1.0),
        "family+precision": (f"{family} {precision}", 1.0), "batch": ("any", batch),
        "task batch": (task, batch), "many": ("any", math.log(count)),
    }  # fmt: skip
    return count * formats.peak(accelerator, rate) / flops(row.get("model", "")), places


def fit(requests: Requests) -> dict[str, float]:
    """The parts, by `kind.value`."""
    import numpy as np

    names: dict[str, int] = {}
    for places in requests.places:
        for kind, (value, _) in places.items():
            names.setdefault(f"{kind}.{value}", len(names))
    slope = np.zeros((len(requests.places), len(names)))
    for line, places in enumerate(requests.places):
        for kind, (value, weight) in places.items():
            slope[line, names[f"{kind}.{value}"]] = weight
    off = np.log(requests.measured) - np.array(requests.expected)
    count = Counter(requests.sources)
    weights = np.array([count[source] ** -0.5 for source in requests.sources])
    held = np.array([(_HOLD / _KINDS[name.split(".", 1)[0]]) ** 2 for name in names])
    point = np.zeros(len(names))
    for _ in range(8):  # a soft loss, as weights of the rows
        residual = off - slope @ point
        pull = weights / np.sqrt(1 + (residual / 0.15) ** 2)
        point = np.linalg.solve((slope.T * pull) @ slope + np.diag(held), slope.T @ (pull * off))
    return {name: round(float(value), 5) for name, value in zip(names, point, strict=True)}


def residuals(requests: Requests, parts: Mapping[str, float]) -> Column:
    """log(predicted / measured)."""
    import numpy as np

    def moved(places: Mapping[str, tuple[str, float]]) -> float:
        return sum(parts.get(f"{kind}.{v}", 0.0) * weight for kind, (v, weight) in places.items())

    predicted = np.array(requests.expected) + np.array([moved(p) for p in requests.places])
    found: Column = predicted - np.log(requests.measured)
    return found


def part(requests: Requests, keep: Iterable[Any]) -> Requests:
    """The rows that are kept."""
    kept = list(keep)
    return Requests(
        list(compress(requests.places, kept)), list(compress(requests.expected, kept)),
        list(compress(requests.measured, kept)), list(compress(requests.sources, kept)),
        requests.unsupported, requests.silent, requests.rows,
    )  # fmt: skip


def width(requests: Requests) -> float:
    """Half of an 80 % band in the logarithm, by sources left out in turn."""
    import numpy as np

    found = []
    for source in sorted(set(requests.sources)):
        keep = [each != source for each in requests.sources]
        if not any(keep):
            continue
        parts = fit(part(requests, keep))
        off = np.abs(residuals(part(requests, [not k for k in keep]), parts))
        found.append(float(np.quantile(off, 0.8)))
    return round(sum(found) / len(found), 4) if found else 0.5
