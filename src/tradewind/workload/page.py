"""The tables of docs/workload.md, from the same description as the reader."""

from __future__ import annotations

import re

from tradewind.workload import fields
from tradewind.workload.fields import SECTIONS
from tradewind.workload.sections import Field

_MARKED = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(section: str) -> str:
    found: tuple[Field, ...] = (fields.NAME,)
    needed: tuple[str, ...] = ()
    for candidate in SECTIONS:
        if candidate.name == section:
            found, needed = candidate.fields, candidate.required
    lines = ["| field | meaning | written as | default | example |", "|---|---|---|---|---|"]
    for field in found:
        default = "required" if field.name in needed else field.default
        cells = (f"`{field.name}`", field.meaning, field.kind.words, default, f"`{field.example}`")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def renewed(text: str) -> str:
    """A page with what stands between its `<!-- fields: train -->` and `<!-- end -->` made new."""
    return _MARKED.sub(lambda found: found[1] + table(found[2]) + found[3], text)
