"""What serves a model without machines of one's own: serverless GPUs, and models by the token.

Facts in `data/serverless.csv` and `data/model_apis.csv`, each with its date and source.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue

_DATA = Path(__file__).parent / "data"
USUAL_IDLE_S = 60.0  # until an idle container ends, where its provider does not say


class Serverless(NamedTuple):
    provider: str
    service: str
    accelerator: str
    most_accelerators: int  # of one container
    usd_per_s: float  # for each accelerator
    idle_s: float
    region: str  # empty: not told
    as_of: str
    source: str


class ModelApi(NamedTuple):
    model: str
    provider: str
    offered_as: str
    input_usd: float  # a million tokens
    output_usd: float
    as_of: str
    source: str


@cache
def serverless() -> tuple[Serverless, ...]:
    path = _DATA / "serverless.csv"
    return tuple(
        Serverless(
            row["provider"],
            row["service"],
            row["accelerator"],
            int(_number(path, line, row, "most_accelerators") or 1),
            _number(path, line, row, "usd_per_s") or 0.0,
            _number(path, line, row, "idle_s") or USUAL_IDLE_S,
            row["region"],
            row["as_of"],
            row["source"],
        )
        for line, row in csvfile.rows(path)
    )


@cache
def model_apis() -> tuple[ModelApi, ...]:
    path = _DATA / "model_apis.csv"
    return tuple(
        ModelApi(
            row["model"],
            row["provider"],
            row["offered_as"],
            _number(path, line, row, "input_usd_per_million") or 0.0,
            _number(path, line, row, "output_usd_per_million") or 0.0,
            row["as_of"],
            row["source"],
        )
        for line, row in csvfile.rows(path)
    )


def _number(path: Path, line: int, row: dict[str, str], name: str) -> float | None:
    try:
        return csvfile.number(row, name)
    except InvalidValue as error:
        raise BadFile(f"{path}:{line}: {error.message}") from None
