"""Sweeps over parameters: what is asked for, as combinations of values. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product

from tradewind.base.errors import InvalidValue
from tradewind.model import sensitive

MOST = 32
"""Runs of one command: each gets a controller in the background, which is a process."""
_NAME = re.compile(r"(?!TRADEWIND_)[A-Za-z_][A-Za-z0-9_]*")


def combinations(
    given: Sequence[str], *, said: str = "--sweep", most: int = MOST
) -> list[dict[str, str]]:
    """Of `LR=1e-3,1e-4` and the like; the last named changes fastest. `said`: by what option."""
    swept: dict[str, list[str]] = {}
    for text in given:
        name, sign, values = text.partition("=")
        hint = f"{said} LR=1e-3,1e-4 makes two runs whose jobs find LR in their environment"
        if not sign or not _NAME.fullmatch(name):
            raise InvalidValue(f"{said} {text}: it is NAME=VALUE,VALUE…", hint=hint)
        if name in swept:
            raise InvalidValue(f"{said} {name} is there twice", hint=hint)
        swept[name] = values.split(",")
        if len(set(swept[name])) < len(swept[name]) or not all(swept[name]):
            raise InvalidValue(f"{said} {text}: a value is empty or there twice", hint=hint)
    found = [dict(zip(swept, values, strict=True)) for values in product(*swept.values())]
    if len(found) > most:
        raise InvalidValue(
            f"{said}: {len(found)} combinations are more than the {most} of one command",
            hint="sweep over some of the values first",
        )
    return found


def check(values: Mapping[str, str], secrets: Collection[str], *, said: str = "--sweep") -> None:
    """What holds of a workload's own variables holds of these."""
    for name, value in values.items():
        if name in secrets:
            raise InvalidValue(f"{said} {name}: it is in run.secrets", hint="name it otherwise")
        if seen := sensitive.variable(name, value):
            raise InvalidValue(
                f"{said} {name} looks like {seen}, and all who may read the store could read it",
                hint="name where it is in run.secrets",
            )
