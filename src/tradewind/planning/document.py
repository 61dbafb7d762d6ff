"""Plans as documents: what `tradewind plan --json` prints, and the saved plan that `run` takes.

Hours are wall-clock, money is dollars with at most six decimals, which is exact. Reading is strict:
a field that is missing, unknown or of the wrong kind is a BadFile that names it.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from tradewind.base.errors import BadFile, InvalidValue, TradewindError
from tradewind.base.units import MICROS_PER_DOLLAR, Micros
from tradewind.model import (
    Checkpoint,
    Data,
    Job,
    Limits,
    Machines,
    Measured,
    Train,
    Workload,
    shape,
)
from tradewind.model.lengths import Lengths
from tradewind.model.plan import Loser, Plan, Plans
from tradewind.model.sensitive import HIDDEN, redacted_all, redacted_job, redacted_tags
from tradewind.model.serve import Serve
from tradewind.model.shape import Shape, Work
from tradewind.planning.words import old_prices

FORMAT = 1
KIND = "tradewind-plan"
_HINT = "write it again with `tradewind plan … --out FILE`"
_LARGEST = 10_000_000  # characters
_DIGITS, _MOST = 18, 1e18  # of a number: weights are counted, and money in millionths

# Fields whose value is money, and what a document calls them.
_MONEY = {
    "cost": "cost_usd",
    "cost_low": "cost_usd_low",
    "cost_high": "cost_usd_high",
    "expected": "expected_usd",
    "costs": "costs_usd",
    "price_hour": "price_usd_per_hour",
    "bring": "bring_usd",
    "bring_once": "bring_once_usd",
    "save": "save_usd_per_hour",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A plan to be carried out."""

    plan: Plan
    workload: Workload
    made_at: datetime


# -- what --json prints --------------------------------------------------------------------------


def to_json(plans: Plans) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "made_at": plans.made_at.isoformat(),
        "workload": _shown_workload(plans.workload),
        "deadline_hours": plans.deadline_hours,
        "store": "/".join(plans.store) if plans.store else None,
        "best": plan_json(plans.best) if plans.best else None,
        "plans": [plan_json(plan) for plan in plans.plans],
        "front": [plan_json(plan) for plan in plans.front],
        "later": [
            {"deadline_hours": later.deadline_hours, "plan": later.plan and plan_json(later.plan)}
            for later in plans.later
        ],
        "surer": [
            {"confidence": surer.confidence, "plan": surer.plan and plan_json(surer.plan)}
            for surer in plans.surer
        ],
        "losers": [loser_json(loser) for loser in plans.losers],
        "relaxations": [
            {"limit": r.limit, "why": r.why, "plan": plan_json(r.plan)} for r in plans.relaxations
        ],
        "weighed": {
            "candidates": plans.candidates,
            "layouts": plans.layouts,
            "offers": plans.offers,
        },
        "prices": {
            "from": plans.prices_from or None,
            "until": plans.prices_until or None,
            "old": old_prices(plans) or None,
        },
        "notes": list(plans.notes),
    }


def _shown_workload(workload: Workload) -> dict[str, Any]:
    plain: dict[str, Any] = redacted_all(_plain(workload))
    if plain.get("tags"):
        plain["tags"] = redacted_tags(plain["tags"])
    return plain | ({"run": redacted_job(plain["run"])} if "run" in plain else {})


def plan_json(plan: Plan) -> dict[str, Any]:
    return {_MONEY.get(name, name): _shown(name, value) for name, value in _values(plan).items()}


def loser_json(loser: Loser) -> dict[str, Any]:
    return {_MONEY.get(name, name): _shown(name, value) for name, value in _values(loser).items()}


def _values(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _shown(name: str, value: Any) -> Any:
    if name not in _MONEY or value is None:
        return _plain(value)
    if isinstance(value, dict):
        return {key: micros / MICROS_PER_DOLLAR for key, micros in value.items()}
    return value / MICROS_PER_DOLLAR


def _plain(value: Any) -> Any:
    """Data of dataclasses, without what is None: that is what a reader takes to be left out."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(v) for name, v in _values(value).items() if v is not None}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value


# -- a saved plan --------------------------------------------------------------------------------


def save(plan: Plan, workload: Workload, *, made_at: datetime) -> str:
    """The text of a saved plan. The workload's `model` should be a name or a shape: a path would
    mean another file somewhere else."""
    document = {
        "kind": KIND,
        "format": FORMAT,
        "made_at": made_at.isoformat(),
        "plan": plan_json(plan),
        "workload": _plain(workload),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read(text: str, origin: str) -> Saved:
    """Raises BadFile, whatever the text is."""
    try:
        return _read(text)
    except _Wrong as error:
        raise BadFile(f"{origin}: {error}", hint=error.hint) from None
    except InvalidValue as error:
        raise BadFile(f"{origin}: {error.message}", hint=error.hint or _HINT) from None


class _Wrong(Exception):
    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message)
        self.hint = hint


def _read(text: str) -> Saved:
    if len(text) > _LARGEST:
        raise _Wrong("it is larger than any plan; is it the right file?")
    try:
        root = json.loads(text, parse_constant=_no_constant, parse_int=_whole, parse_float=_real)
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"it is no JSON: {error}") from None
    if isinstance(root, dict) and {"best", "workload"} <= set(root) and "kind" not in root:
        root = _printed(root)
    if not isinstance(root, dict) or root.get("kind") != KIND:
        raise _Wrong("it is no saved plan")
    number = root.get("format")
    if number != FORMAT:
        raise _Wrong(
            f"it is of format {json.dumps(number)}, and this Tradewind reads {FORMAT}",
            "write it again with this version's `tradewind plan … --out FILE`",
        )
    given = _fields(root, "", ("kind", "format", "made_at", "plan", "workload"))
    return Saved(
        plan=_plan(given["plan"]),
        workload=_workload(given["workload"]),
        made_at=_moment(given["made_at"], "made_at"),
    )


def _printed(root: dict[str, Any]) -> dict[str, Any]:
    """What `--json` has printed, as it would have been saved."""
    if root["best"] is None:
        raise _Wrong("in it no plan keeps every limit", "a plan with other limits")
    if HIDDEN in json.dumps(root["workload"], ensure_ascii=False):
        raise _Wrong("in it variables of the job are hidden, as in all that is printed")
    kept = {name: root.get(name) for name in ("format", "made_at", "workload")}
    return {"kind": KIND, "plan": root["best"], **kept}


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"{text[:8]}… is larger than any number in a plan")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if abs(number) > _MOST:
        raise ValueError(f"{text[:24]} is larger than any number in a plan")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _plan(value: Any) -> Plan:
    known = {_MONEY.get(f.name, f.name): f for f in fields(Plan)}
    needed = [name for name, field in known.items() if field.default is MISSING]
    given = _fields(value, "plan", tuple(known), needed)
    made: dict[str, Any] = {}
    for name, field in known.items():
        if name not in given:
            continue  # a plan that was saved before there was such a field
        where = f"plan.{name}"
        if field.name in _MONEY:
            made[field.name] = _micros(given[name], where, inner=str(field.type).startswith("dict"))
        else:
            made[field.name] = _typed(given[name], str(field.type), where)
    return Plan(**made)


def _micros(value: Any, where: str, *, inner: bool) -> Any:
    if inner:
        if not isinstance(value, dict):
            raise _Wrong(f"{where} is no amounts")
        return {name: _micros(v, f"{where}.{name}", inner=False) for name, v in value.items()}
    return Micros(round(_number(value, where) * MICROS_PER_DOLLAR))


def workload_json(workload: Workload) -> dict[str, Any]:
    """As a document has it, for people too: what looks like a secret is hidden."""
    return _shown_workload(workload)


def workload_of(value: Any, origin: str) -> Workload:
    """Raises BadFile."""
    try:
        return _workload(value)
    except _Wrong as error:
        raise BadFile(f"{origin}: {error}", hint=error.hint) from None
    except InvalidValue as error:
        raise BadFile(f"{origin}: {error.message}", hint=error.hint or _HINT) from None


def _workload(value: Any) -> Workload:
    parts: dict[str, Callable[[Any], Any]] = {
        "name": lambda v: v,
        "train": _train,
        "work": lambda v: _made(Measured, v, "workload.work"),
        "serve": _serve,
        "machines": lambda v: _made(Machines, _with_tuples(v), "workload.machines"),
        "data": lambda v: _made(Data, v, "workload.data"),
        "checkpoint": lambda v: _made(Checkpoint, v, "workload.checkpoint"),
        "limits": _limits,
        "run": lambda v: _made(Job, _with_tuples(v), "workload.run"),
    }
    given = _fields(value, "workload", tuple(parts), needed=())
    return Workload(**{name: parts[name](inner) for name, inner in given.items()})


def _train(value: Any) -> Train:
    model = value.get("model") if isinstance(value, dict) else None
    if isinstance(model, dict):
        kind = Work if "forward_flops_per_sample" in model else Shape
        value = {**value, "model": _shape(kind, model)}
    made: Train = _made(Train, value, "workload.train")
    return made


def _serve(value: Any) -> Serve:
    value = _with_tuples(value)
    if isinstance(value, dict):
        model = value.get("model")
        if isinstance(model, dict):
            kind = Work if "forward_flops_per_sample" in model else Shape
            value["model"] = _shape(kind, model, "workload.serve.model")
        for name in ("input", "output"):
            if isinstance(value.get(name), dict):
                value[name] = _made(Lengths, _with_tuples(value[name]), f"workload.serve.{name}")
    made: Serve = _made(Serve, value, "workload.serve")
    return made


def _shape(kind: type, value: Mapping[str, Any], where: str = "workload.train.model") -> Any:
    """Shapes check nothing themselves: every number is looked at here."""
    known = {f.name: str(f.type) for f in fields(kind)}
    given = _fields(value, where, tuple(known), needed=())
    typed = {name: _typed(v, known[name], f"{where}.{name}") for name, v in given.items()}
    return _call(kind, typed, where)


def _limits(value: Any) -> Limits:
    value = _with_tuples(value)
    if isinstance(value, dict) and "deadline" in value:
        value["deadline"] = _moment(value["deadline"], "workload.limits.deadline")
    made: Limits = _made(Limits, value, "workload.limits")
    return made


def _with_tuples(value: Any) -> Any:
    """JSON has lists only."""
    if not isinstance(value, dict):
        return value
    return {n: tuple(inner) if isinstance(inner, list) else inner for n, inner in value.items()}


def _made(kind: type, value: Any, where: str) -> Any:
    return _call(kind, _fields(value, where, [f.name for f in fields(kind)], needed=()), where)


def _call(kind: type, given: Mapping[str, Any], where: str) -> Any:
    """The classes of workloads refuse by themselves what cannot be meant."""
    try:
        return kind(**given)
    except TradewindError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise _Wrong(f"{where}: {error}") from None


def _fields(
    value: Any, where: str, known: Sequence[str], needed: Sequence[str] | None = None
) -> dict[str, Any]:
    name = where or "the document"
    if not isinstance(value, dict):
        raise _Wrong(f"{name} has no fields")
    for field in value:
        if field not in known:
            raise _Wrong(f"{name} has a field {field[:40]!r} that is not known")
    for field in known if needed is None else needed:
        if field not in value:
            raise _Wrong(f"{name} lacks {field}")
    return value


def _moment(value: Any, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _Wrong(f"{where} is no date and time") from None
    if moment.tzinfo is None:
        raise _Wrong(f"{where} has no time zone")
    return moment


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise _Wrong(f"{where} is no number")
    return value


def _typed(value: Any, kind: str, where: str) -> Any:
    """A value of a field, by the field's annotation."""
    choices = getattr(shape, kind, None)
    if choices is not None:  # a Literal of model.shape
        if value not in typing.get_args(choices):
            raise _Wrong(f"{where} is none of {', '.join(typing.get_args(choices))}")
        return value
    if kind == "float":
        return float(_number(value, where))
    if kind == "tuple[str, ...]":
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _Wrong(f"{where} is no list of names")
        return tuple(value)
    if kind.startswith("dict["):
        if not isinstance(value, dict):
            raise _Wrong(f"{where} has no fields")
        return value
    right = {"str": str, "int": int, "bool": bool}[kind]
    if not isinstance(value, right) or (right is int and isinstance(value, bool)):
        raise _Wrong(f"{where} is no {'text' if right is str else 'number'}")
    return value
