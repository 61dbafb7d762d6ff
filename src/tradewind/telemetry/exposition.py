"""Metrics as Prometheus reads them: https://prometheus.io/docs/instrumenting/exposition_formats/.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    name: str
    words: str
    kind: str = "gauge"


class Sample(NamedTuple):
    metric: Metric
    labels: Mapping[str, str]
    value: float


def text(samples: Iterable[Sample]) -> str:
    """All of a metric stand together, in the order in which metrics first come."""
    found: dict[Metric, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.metric, []).append(sample)
    return "".join(line for metric, some in found.items() for line in _lines(metric, some))


def _lines(metric: Metric, samples: list[Sample]) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.words)}\n"
    yield f"# TYPE {metric.name} {metric.kind}\n"
    for sample in samples:
        labels = ",".join(f'{name}="{_quoted(each)}"' for name, each in sample.labels.items())
        yield f"{metric.name}{{{labels}}} {float(sample.value)!r}\n"


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', '\\"')
