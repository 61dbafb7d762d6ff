"""Environments of reinforcement learning: what has `reset` and `step`, and says what can be done.

Their random numbers, however deep below wrappers, are kept by the name of the variable that has the
environment. What else they are (where a cart stands, how long its episode is) is in objects of
libraries, simulators and processes, and in no checkpoint: that is said when a training resumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from tradewind.torch.feeds import seeding
from tradewind.torch.sessions import users
from tradewind.torch.sessions.looking import attributes_of

_SAY = ("action_space", "action_spec", "single_action_space")
_MOST = 20_000
_LISTED = 64


def captured() -> dict[str, Any]:
    """States of their generators, by name."""
    return {name: seeding.state_of(each) for name, each in _generators()}


def restored(states: dict[str, Any]) -> None:
    for name, each in _generators():
        if name in states:
            seeding.put_state(each, states[name])


def words(held: Iterable[Any]) -> str:
    """What is to be said of those that nobody keeps; "" where there are none."""
    known, found = {id(each) for each in held}, _found()
    for _, outer in found:  # those below others are not told apart
        known |= {id(each) for each in islice(seeding.within(outer, most=_MOST), 1, None)}
    there = [f"{name} ({type(each).__name__})" for name, each in found if id(each) not in known]
    if not there:
        return ""
    more = " and more" if len(there) > 3 else ""
    return (
        f"environments begin new episodes: {', '.join(there[:3])}{more}; their random numbers are"
        " resumed, and what state they have besides is in no checkpoint. Keep it by"
        " extra={'environment': …}, an object with state_dict and load_state_dict; or call"
        " session.save() where episodes end, with every_s= too long to save elsewhere"
    )


def is_environment(value: Any) -> bool:
    kind = type(value)
    if not callable(getattr(kind, "reset", None)) or not callable(getattr(kind, "step", None)):
        return False
    own = getattr(value, "__dict__", {})
    return any(name in own or hasattr(kind, name) for name in _SAY)


def _generators() -> Iterator[tuple[str, Any]]:
    kinds, seen = seeding.kinds(), set[int]()
    for name, environment in _found():
        number = 0
        for each in seeding.within(environment, most=_MOST):
            if isinstance(each, kinds) and id(each) not in seen:
                seen.add(id(each))
                yield f"{name} {number}", each
                number += 1


def _found() -> list[tuple[str, Any]]:
    """The outermost, by name: in variables of the functions that lead here and of the user's files,
    in lists there, and in attributes of the user's objects."""
    made: dict[int, tuple[str, Any]] = {}
    for name, value in _variables():
        if is_environment(value):
            made.setdefault(id(value), (name, value))
        elif isinstance(value, (list, tuple)):
            for number, each in enumerate(islice(value, _LISTED)):
                if is_environment(each):
                    made.setdefault(id(each), (f"{name}[{number}]", each))
        elif users.is_users_class(type(value)):  # type: ignore[arg-type]
            for key, each in attributes_of(value):
                if is_environment(each):
                    made.setdefault(id(each), (f"{name}.{key}", each))
    return list(made.values())


def _variables() -> Iterator[tuple[str, Any]]:
    for frame in users.frames():
        yield from list(frame.f_locals.items())
    for module in users.modules():
        yield from list(vars(module).items())
