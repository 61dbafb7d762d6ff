"""How work is to be spread, as the script, a plan or the run says.

The fields are those of a plan's layout (`tradewind plan --json`, `$TRADEWIND_LAYOUT`), and all of
them may be left out. What this room cannot do is refused here, with what can be done instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.model.train import RECOMPUTES, SHARDINGS

VARIABLE = "TRADEWIND_LAYOUT"
_DEGREES = ("dp", "tp", "pp", "cp", "ep", "vp")
_AMOUNTS = (*_DEGREES, "micro_batch", "accumulation", "shard")
_PRECISIONS = ("fp32", "bf16", "fp16", "pure-bf16")
_BELONGS_TO_PLANS = ("stack", "words", "layout_words")


class Layout(Struct, frozen=True, kw_only=True):
    dp: int | None = None
    """None: all ranks that the other degrees leave."""
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    vp: int = 1
    micro_batch: int | None = None
    """Samples that go through the model at once; None: the whole batch of a rank."""
    accumulation: int = 1
    sharding: str = "none"
    recompute: str = "none"
    shard: int | None = None
    """Ranks over which the state is sharded, where that is not all of `dp`."""
    precision: str = "fp32"

    @property
    def replicas(self) -> int:
        return self.dp or 1

    @property
    def batch_size(self) -> int | None:
        """Samples of a step on one replica; None where the layout does not say."""
        return self.micro_batch * self.accumulation if self.micro_batch else None

    @property
    def degrees(self) -> str:
        """`dp 2 × tp 2`: what is not split is left out."""
        found = [f"{name} {n}" for name in _DEGREES[:4] if (n := getattr(self, name) or 1) > 1]
        return " × ".join(found) or "dp 1"


def wanted(given: Any, env: Mapping[str, str], precision: str | None = None) -> Layout:
    """`given` is a layout, a plan, a table of either, or a file of one; None: what the run says,
    and outside of runs, replicas on all ranks."""
    where = "the layout"
    if given is None and env.get(VARIABLE):
        given, where = _parsed(env[VARIABLE], f"${VARIABLE}"), f"${VARIABLE}"
    if isinstance(given, (str, Path)):
        given, where = _file(Path(given)), str(given)
    found = given if isinstance(given, Layout) else _checked(_table(given, where), where)
    if precision is not None:
        found = structs.replace(found, precision=precision)
    _possible(found)
    return found


def placed(layout: Layout, world: int) -> Layout:
    """With the number of replicas, on so many ranks."""
    split = layout.tp * layout.pp * layout.cp
    if layout.dp is None and world % split == 0:
        layout = structs.replace(layout, dp=world // split)
    needs = split * (layout.dp or 1)
    if needs != world:
        many = f"{world} rank" + ("s" if world != 1 else "")
        raise InvalidValue(
            f"the layout needs {needs} ranks ({layout.degrees}), and there"
            f" {'is' if world == 1 else 'are'} {many}",
            hint=f"start it by torchrun --nproc-per-node {needs} (or as many on several machines),"
            " or give another layout; without one, all ranks are replicas",
        )
    if layout.sharding == "hybrid":
        inside = layout.shard or layout.replicas
        if layout.replicas % inside:
            raise InvalidValue(
                f"hybrid sharding in groups of {inside} does not divide dp {layout.replicas}",
                hint="shard is a divisor of dp, such as the GPUs of one machine",
            )
    return layout


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadFile(f"{where} is no JSON: {error}", hint="see docs/strategies.md") from None


def _file(path: Path) -> Any:
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {path}", hint="make one: tradewind plan WORKLOAD --json"
        ) from None
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path} is no text", hint="give what tradewind plan --json says") from None
    return _parsed(text, str(path))


def _table(given: Any, where: str) -> dict[str, Any]:
    """Out of whatever holds one: a plan's document, a plan, a layout."""
    if given is None:
        return {}
    if is_dataclass(given) and not isinstance(given, type):
        given = asdict(given)
    if not isinstance(given, Mapping):
        raise InvalidValue(
            f"{where} is a {type(given).__name__}",
            hint='give a table such as {"dp": 2, "tp": 2}, a plan, or the path of a plan.json',
        )
    outer = dict(given)
    for key in ("best", "plan"):  # of all plans the best; of a saved plan the plan
        if isinstance(outer.get(key), Mapping):
            outer = dict(outer[key])
    if "best" in outer:
        raise InvalidValue(
            f"{where} has no plan that keeps every limit", hint="loosen a limit and plan again"
        )
    if isinstance(outer.get("layout"), Mapping):
        more = {"precision": outer["precision"]} if outer.get("precision") else {}
        return {**more, **outer["layout"]}
    return {key: value for key, value in outer.items() if key not in _BELONGS_TO_PLANS}


def _checked(table: dict[str, Any], where: str) -> Layout:
    known = Layout.__struct_fields__
    for name, value in table.items():
        if name not in known:
            raise InvalidValue(
                f"{where} has {name!r}, which no layout has",
                hint=f"a layout has {', '.join(known)}",
            )
        if name in _AMOUNTS:
            whole = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (whole and value == int(value) and value >= 1):
                raise InvalidValue(f"{name} of {where} is {value!r}, and must be 1, 2, 3, …")
    for name, choices in (("sharding", SHARDINGS), ("recompute", RECOMPUTES)):
        if table.get(name, choices[0]) not in choices:
            raise InvalidValue(
                f"{name} of {where} is {table[name]!r}", hint=f"one of {', '.join(choices)}"
            )
    made: dict[str, Any] = {
        k: int(v) if k in _AMOUNTS else v for k, v in table.items() if v is not None
    }
    return Layout(**made)


def _possible(layout: Layout) -> None:
    """What no strategy here does is refused before anything is touched."""
    for name, meaning, instead in (
        ("cp", "splitting sequences", "tp, or recompute: full, which need less memory too"),
        ("ep", "splitting experts", "sharding: zero3, which spreads the experts' state as well"),
        ("vp", "several stages on a rank", "vp 1, with more micro-batches"),
    ):
        if getattr(layout, name) > 1:
            raise InvalidValue(
                f"the layout has {name} {getattr(layout, name)}: {meaning} is not done by prepare",
                hint=f"plan with {name}: 1 ({instead}), or train with a stack that has it",
            )
    if layout.precision not in _PRECISIONS:
        raise InvalidValue(
            f"precision {layout.precision!r} is not made by prepare",
            hint=f"one of {', '.join(_PRECISIONS)}; for fp8, convert the model's layers before"
            " (torchao) and say precision='bf16' here",
        )
