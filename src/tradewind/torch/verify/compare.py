"""What is the same in a training that was interrupted and in one that was not. Pure."""

from __future__ import annotations

from msgspec import Struct

from tradewind.torch.sessions.trial import Row
from tradewind.torch.verify.lives import Life


class Compared(Struct, frozen=True):
    """`first` is the step from which on something is other; None: it is the same throughout."""

    what: str
    count: int
    first: int | None
    words: str = ""


def compare(one: list[Row], other: list[Row]) -> list[Compared]:
    """Steps that were made again count as they were made last."""
    whole, broken = _steps(one), _steps(other)
    steps = sorted(whole)
    _forget_unseeded(whole, broken)
    found = [_data(_batches(one), _batches(other))]
    for what, name in (
        ("weights", "weights"),
        ("optimizers", "optimizers"),
        ("averages", "beside"),
        ("random numbers", "numbers"),
        ("learning rates", "rates"),
        ("metrics", "metrics"),
    ):
        first = next(
            (
                step
                for step in steps
                if step not in broken or not _alike(whole[step], broken[step], name)
            ),
            None,
        )
        words = ""
        if first is not None and first not in broken:
            words = "the step was never made"
        elif first is not None and name == "beside":
            words = ", ".join(_others(whole[first].beside, broken[first].beside))
        elif first is not None and name in ("rates", "metrics"):
            words = f"{_of(whole[first], name)} became {_of(broken[first], name)}"
        if name != "beside" or any(row.beside for row in whole.values()):
            found.append(Compared(what, len(steps), first, words))
    return found


def _forget_unseeded(whole: dict[int, Row], broken: dict[int, Row]) -> None:
    """Generators that nobody has seeded are others in every process. Where they matter, the data or
    the weights say so."""
    if 1 not in whole or 1 not in broken:
        return
    first, again = whole[1].numbers, broken[1].numbers
    seeded = {name for name in first if first[name] == again.get(name)}
    for row in (*whole.values(), *broken.values()):
        row.numbers = {name: word for name, word in row.numbers.items() if name in seeded}


def _of(row: Row, name: str) -> object:
    value = getattr(row, name)
    if name == "metrics":  # what is measured by a clock is another each time
        return {k: v for k, v in value.items() if k != "step" and not k.startswith("telemetry/")}
    return value


def _others(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return [name for name, word in one.items() if other.get(name, word) != word]


def _alike(one: Row, other: Row, name: str) -> bool:
    if name == "beside":  # one that has begun again may come to exist later
        return not _others(one.beside, other.beside)
    return _same(_of(one, name), _of(other, name))


def _same(one: object, other: object) -> bool:
    return repr(one) == repr(other)  # as nan is


def _steps(rows: list[Row]) -> dict[int, Row]:
    return {row.step: row for row in rows if row.index < 0}


def _batches(rows: list[Row]) -> dict[tuple[int, int], str]:
    return {(row.epoch, row.index): row.data for row in rows if row.index >= 0}


def _data(one: dict[tuple[int, int], str], other: dict[tuple[int, int], str]) -> Compared:
    for number, place in enumerate(sorted(one)):
        epoch, index = place
        if place not in other:
            words = f"batch {index} of epoch {epoch} never came"
        elif one[place] != other[place]:
            words = f"batch {index} of epoch {epoch} is another"
        else:
            continue
        return Compared("data", len(one), number + 1, words)
    more = sorted(set(other) - set(one))
    if one and len(more) > 1:  # one may have been fetched ahead
        return Compared("data", len(one), len(one) + 1, f"{len(more)} batches more were given")
    return Compared("data", len(one), None)


def rows_of(lives: list[Life]) -> list[Row]:
    return [row for life in lives for row in life.rows]


def untried(rows: list[Row]) -> list[str]:
    """What no interruption could show, in words."""
    found, made = [], _steps(rows)
    if len({row.weights for row in made.values()}) == 1:
        found.append(
            f"a training step, as no weight has changed in {len(made)} steps: what comes later,"
            " such as after a buffer has been filled, may start again (--steps)"
        )
    still = {name for row in made.values() for name in row.beside}
    still -= {
        name
        for name in still
        if len({row.beside[name] for row in made.values() if name in row.beside}) > 1
    }
    if still:
        found.append(
            f"changes of {', '.join(sorted(still)[:3])}, which the session does not hold and which"
            " stayed as it was: a target that is updated later would start again (--steps, or"
            " extra={'name': …})"
        )
    batches = _batches(rows)
    if batches and all(epoch == 0 for epoch, _ in batches):
        found.append(
            f"the end of an epoch, as none ended in {len(batches)} batches: what the script does"
            " there may start again (--steps, or less data)"
        )
    return found


def causes(compared: list[Compared], repeats: bool | None) -> list[str]:
    """What is likely, in words. `repeats`: whether the script comes to the same without any
    interruption; None: not tried."""
    differs = {each.what: each.first for each in compared if each.first is not None}
    if not differs:
        return []
    if repeats is False:
        return [
            "the script does not repeat itself even without interruption: seed it"
            " (torch.manual_seed, random.seed, numpy.random.seed), and call"
            " torch.use_deterministic_algorithms(True) on a GPU"
        ]
    first = min(differs.values())
    found = []
    if differs.get("data") is not None:
        found.append(
            "the data after a resume is other data: a split or a shuffle before the session that is"
            " not seeded, samples that depend on a counter, or a loader that is not data=…"
        )
    if differs.get("learning rates") is not None:
        found.append(
            "learning rates are others: a scheduler of the script's own that the session does not"
            " hold (extra={…}), or rates from a counter that starts again (session.step_number,"
            " session.enumerate)"
        )
    if differs.get("random numbers") == first and "data" not in differs:
        found.append(
            "random numbers are others: something draws between tw.session(…) and the loop, or once"
            " in an epoch that is entered again"
        )
    if differs.get("averages") is not None:
        found.append(
            "an average or a copy of the model is in no checkpoint: give it to the session (ema=…,"
            " or extra={'name': object})"
        )
    if not found and differs.get("weights") is not None:
        found.append(
            "weights are others though data, rates and random numbers are the same: state that is"
            " not in the checkpoint, such as averages, buffers, an optimizer of one's own,"
            " gradients accumulated by a counter that starts again, or a generator out of reach"
        )
    if not found:
        found.append("metrics are computed from variables of the script that start again")
    return found
