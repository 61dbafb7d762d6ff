"""What is fitted: a few terms, each a number that physics suggests and measurements move.

A term's logarithm is a sum: its own value, and how far a family of accelerators, an engine, a class
of formats … lies from it. Each part is held to nought by its spread, so that what nobody measured
falls back to its kin, and at last to physics. The fitted parts lie in `data/calibration.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.estimate.serving import engines

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Cases, Codes, Column

FILE = Path(__file__).parent / "data" / "calibration.json"
_SCALED = ("progress", "grain")
_NAMED = ("family", "engine", "precision", "chip", "software", "mode", "model")
_PRESENT = 2026.5  # what is said of software years is counted back from here


@dataclass(frozen=True, slots=True)
class Term:
    start: float
    spread: float  # of its logarithm; 0: it is what it is
    unit: str
    meaning: str
    parts: Mapping[str, float] = field(default_factory=dict)  # kind → spread


_KERNELS = {"family": 0.3, "engine": 0.3, "precision": 0.3, "family+precision": 0.15}
TERMS: dict[str, Term] = {
    "all": Term(
        1.0, 0.1, "×", "every step, for what no other term says",
        {"family": 0.15, "engine": 0.2, "chip": 0.15, "engine+family": 0.3, "engine+chip": 0.35,
         "software": 0.15, "precision": 0.1, "grain": 0.2, "mode": 0.1, "engine+mode": 0.1,
         "software+chip": 0.15, "engine grain": 0.15, "chip+precision": 0.1, "model": 0.08,
         "progress": 0.1, "engine progress": 0.1, "away progress": 0.5},
    ),
    "matrix": Term(1.7, 0.3, "×", "time of matrix products against the peak",
                   {**_KERNELS, "grain": 0.4, "engine+family": 0.3, "engine+chip": 0.4}),
    "weights": Term(1.3, 0.3, "×", "time of reading weights against the bandwidth",
                    {**_KERNELS, "grain": 0.3, "engine+family": 0.2}),
    "cache": Term(1.6, 0.4, "×", "time of reading the cache against the bandwidth",
                  {"family": 0.3, "engine": 0.4, "latent": 0.4, "engine+family": 0.3,
                   "engine+chip": 0.2}),
    "attention": Term(2.5, 0.4, "×", "time of attention against the 16-bit peak",
                      {"family": 0.3, "engine": 0.3, "latent": 0.4}),
    "roofline": Term(1.5, 0.3, "power", "how far arithmetic hides behind reading"),
    "hop": Term(1e-5, 0.5, "s", "one exchange between a pair of ranks",
                {"family": 0.4, "engine": 0.4, "spread": 0.5, "engine+family": 0.3}),
    "link": Term(1.7, 0.4, "×", "time of exchanges against the link",
                 {"family": 0.4, "spread": 0.5, "engine": 0.3}),
    "launch": Term(1.5e-5, 0.6, "s", "launching one layer of a decoding step",
                   {"engine": 0.6, "family": 0.4, "grain": 0.7, "engine+family": 0.3}),
    "step": Term(1.5e-3, 0.6, "s", "scheduling a step", {"engine": 0.7, "family": 0.3}),
    "sequence": Term(5e-6, 0.8, "s", "sampling and scheduling one sequence of a step",
                     {"engine": 0.7, "family": 0.3, "engine+family": 0.4}),
    "start": Term(8e-3, 0.7, "s", "a request before its first token, without the arithmetic",
                  {"engine": 0.7, "family": 0.3, "software": 0.4, "apart": 0.6, "mode": 0.5,
                   "spread": 0.5, "chip": 0.2, "grain": 0.4}),
    "layer": Term(3e-5, 0.7, "s", "launching one layer of a prefill",
                  {"engine": 0.6, "family": 0.4, "grain": 0.7}),
    "prefill": Term(1.0, 0.2, "×", "a prefill against a mixed step of as many tokens",
                    {"engine": 0.3, "family": 0.2, "mode": 0.3, "grain": 0.3,
                     "precision": 0.2, "spread": 0.4}),
    "clump": Term(1.0, 0.5, "prefills", "that a request waits for beside one other client",
                  {"engine": 0.4, "statistic": 0.3, "software": 0.3, "apart": 0.4}),
    "crowd": Term(0.3, 0.3, "power", "how that grows with the clients",
                  {"engine": 0.2, "statistic": 0.15}),
    "burst": Term(0.1, 0.3, "", "share of requests that all clients send at once, in the beginning",
                  {"engine": 0.2}),
    "tile": Term(12, 0.7, "tokens", "that an expert's products take at least", {"family": 0.3}),
    "queue": Term(1.0, 0.6, "×", "waiting for the prefills of others, as their load has it",
                  {"engine": 0.4, "statistic": 0.2, "apart": 0.5}),
    "turn": Term(1.0, 0.5, "steps", "that a request waits for its turn",
                 {"engine": 0.4, "spread": 0.8, "statistic": 0.3}),
    "inflow": Term(1.0, 0.3, "×", "prefills among decoding steps, as clients see them",
                   {"engine": 0.3, "mode": 0.2}),
    "guess": Term(1.5, 0.2, "×", "decoding with guessed tokens", {"engine": 0.2, "family": 0.1}),
    "usable": Term(0.92, 0.03, "", "share of memory that weights and cache may fill",
                   {"engine": 0.04}),
    "most": Term(600, 0.7, "sequences", "in one step, where nobody says how many",
                 {"engine": 0.4, "mode": 0.5, "software": 0.3}),
    "chunk": Term(8192, 0.5, "tokens", "in one step at most", {"engine": 0.3}),
    "offered": Term(0.8, 0.2, "", "load that still keeps a latency target, of the most",
                    {"family": 0.1, "sparse": 0.15}),
}  # fmt: skip


def kinds_of(cases: Cases) -> dict[str, tuple[Any, Codes]]:
    """For each kind of part the values that occur, and each case's place among them."""
    import numpy as np

    coded = {name: _by_word(getattr(cases, name)) for name in _NAMED}
    for name, (no, yes), is_so in (
        ("sparse", ("dense", "moe"), cases.experts > 1),
        ("latent", ("heads", "latent"), cases.decode_width > 1.6 * cases.prefill_width),
        ("spread", ("tensor", "spread"), cases.spread_attention > 0),
        ("apart", ("together", "apart"), cases.prefill_group > 0),
        ("statistic", ("median", "mean"), cases.mean > 0),
    ):
        coded[name] = _occurring(np.array([no, yes]), is_so.astype(np.intp))
    (software, at), (families, there) = coded["engine"], coded["family"]
    ported = [[engines.away(str(n), str(f)) for f in families] for n in software]
    coded["away"] = np.array(["home", "away"]), np.array(ported, dtype=np.intp)[at, there]
    wanted = {kind for term in TERMS.values() for kind in term.parts}
    found: dict[str, tuple[Any, Codes]] = {}
    for kind in wanted:
        if kind in _SCALED:
            found[kind] = (np.array(["any"]), np.zeros(len(cases), dtype=np.intp))
        elif " " in kind:
            found[kind] = coded[kind.split()[0]]
        elif "+" in kind:
            one, two = kind.split("+")
            (names, first), (others, second) = coded[one], coded[two]
            pairs = np.array([f"{name} {other}" for name in names for other in others])
            found[kind] = _occurring(pairs, first * len(others) + second)
        else:
            found[kind] = coded[kind]
    return found


def _by_word(words: Any) -> tuple[Any, Codes]:
    """Sorting words takes longer than all the arithmetic of an estimate."""
    import numpy as np

    if words.size and not words.strides[0]:  # one value for every case
        return words[:1].copy(), np.zeros(len(words), dtype=np.intp)
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(word, len(places)) for word in words.tolist()], np.intp)
    return np.array(list(places), dtype=str), codes


def _occurring(names: Any, codes: Codes) -> tuple[Any, Codes]:
    import numpy as np

    there = np.zeros(len(names), dtype=bool)
    there[codes] = True
    return names[there], (np.cumsum(there) - 1)[codes]


def scale(kind: str, cases: Cases) -> Column | float:
    """What a part is multiplied by: the age of software in years, or how fine experts are cut."""
    import numpy as np

    if kind.endswith("progress"):
        return _PRESENT - cases.year
    if kind.endswith("grain"):
        found: Column = np.log2(np.maximum(cases.experts, 1)) / 8
        return found
    return 1.0


class Constants:
    """Parts by name: `matrix` is a term's own, `matrix.family.hopper` one of its parts."""

    def __init__(self, parts: Mapping[str, float]) -> None:
        self.parts = dict(parts)

    def terms(self, cases: Cases) -> dict[str, Column]:
        import numpy as np

        kinds = kinds_of(cases)
        found = {}
        for name, term in TERMS.items():
            total: Column | float = np.log(term.start) + self.parts.get(name, 0.0)
            for kind in term.parts:
                values, codes = kinds[kind]
                table = [self.parts.get(f"{name}.{kind}.{value}", 0.0) for value in values]
                if any(table):
                    # One value for all is one number, and not a column of them.
                    part = np.array(table)[codes] if len(table) > 1 else table[0]
                    total = total + part * scale(kind, cases)
            found[name] = np.broadcast_to(np.exp(total), (len(cases),))
        return found


@cache
def calibration() -> Mapping[str, Any]:
    """The calibration that came with the package."""
    loaded: Mapping[str, Any] = json.loads(FILE.read_text())
    return loaded


@cache
def fitted() -> Constants:
    return Constants(calibration()["constants"])
