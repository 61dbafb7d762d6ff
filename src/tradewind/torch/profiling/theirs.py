"""The user's own code: how it is found, and how its failures are told.

Whatever it raises becomes one error of ours that shows their exception and the line in their file.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import linecache
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tradewind.base.errors import InvalidValue, NotFound, TradewindError

_EXAMPLE = "write package.module:factory, for example models.gpt:small"
_OURS = Path(__file__).parents[2]
_MESSAGE = 400  # characters of their message: PyTorch's may run to pages


def load(target: str, folder: Path) -> Callable[..., Any]:
    """The callable that `package.module:factory` names, looked for in `folder` first."""
    found = find(target, folder)
    if not callable(found):
        raise InvalidValue(
            f"{target} is a {type(found).__name__}, which cannot be called",
            hint="name a function that returns the model, or the model's class",
        )
    return ready(found, target)


def find(target: str, folder: Path) -> Any:
    """Whatever it names."""
    module_name, colon, attribute = target.strip().partition(":")
    if "/" in module_name or module_name.endswith(".py"):
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise InvalidValue(
            f"{target!r} names a file, not a module",
            hint=f"write {dotted or 'package.module'}:{attribute or 'factory'}",
        )
    dotted_name = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
    if not colon or not re.fullmatch(f"{dotted_name}:{dotted_name}", f"{module_name}:{attribute}"):
        raise InvalidValue(f"{target!r} does not name a factory", hint=_EXAMPLE)
    found: Any = _imported(module_name, folder)
    for word in attribute.split("."):
        if not hasattr(found, word):
            raise _no_attribute(found, module_name, word)
        found = getattr(found, word)
    return found


def ready(factory: Callable[..., Any], target: str) -> Callable[..., Any]:
    """Refuses a factory that wants arguments, before it is run with none."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # it does not say
        return factory
    needed = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise InvalidValue(
            f"{target} needs {', '.join(needed)}; a factory is called without arguments",
            hint="write a function that calls it, and name that",
        )
    return factory


def _imported(name: str, folder: Path) -> ModuleType:
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        with calling(f"importing {name}", folder):
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as error:
                # Theirs is missing, and not something that theirs imports.
                if error.name and f"{name}.".startswith(f"{error.name}."):
                    raise _no_module(error.name, folder) from None
                raise
    finally:
        sys.path.remove(str(folder))


def _no_module(missing: str, folder: Path) -> NotFound:
    parent, _, last = missing.rpartition(".")
    place = folder.joinpath(*parent.split(".")) if parent else folder
    choices = _close(last, _modules(place))
    prefix = f"{parent}." if parent else ""
    said = " or ".join(prefix + choice for choice in choices)
    return NotFound(
        f"there is no module {missing!r} in {folder} or among the installed packages",
        hint=f"did you mean {said}?"
        if choices
        else f"run it from your project's folder; {_EXAMPLE}",
        choices=[prefix + choice for choice in choices],
    )


def _modules(folder: Path) -> Iterator[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.suffix == ".py" or (entry.is_dir() and not entry.name.startswith((".", "_"))):
            yield entry.stem


def _no_attribute(owner: Any, module_name: str, word: str) -> NotFound:
    names = [name for name in dir(owner) if not name.startswith("_")]
    choices = _close(word, names)
    own = [
        name
        for name in names
        if callable(getattr(owner, name, None))
        and getattr(getattr(owner, name), "__module__", None) == module_name
    ]
    hint = f"it has {', '.join(own[:8])}" if own else _EXAMPLE
    return NotFound(
        f"{getattr(owner, '__name__', module_name)} has no {word!r}",
        hint=f"did you mean {' or '.join(choices)}?" if choices else hint,
        choices=choices,
    )


def _close(word: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(word, list(known), n=3)


# -- their failures ------------------------------------------------------------------------------


@contextmanager
def calling(what: str, folder: Path | None = None) -> Iterator[None]:
    """Turns whatever their code raises into an error that names `what` and their line."""
    try:
        yield
    except (TradewindError, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as error:
        raise told(error, what, folder or Path.cwd()) from None


def told(error: BaseException, what: str, folder: Path) -> TradewindError:
    name, place = type(error).__name__, _place(error, folder)
    operator = getattr(error, "func", None)
    if name in _FAKE and operator is not None:
        why, advice = _FAKE[name]
        reading = " (`.item()`, `int(x)`, `.tolist()` or `if x:`)"
        shown = f"{operator}{reading if '_local_scalar_dense' in str(operator) else ''}"
        return InvalidValue(f"{what}: {shown} {why}{place}", hint=advice)
    message = _shortened(str(error))
    hint = next((advice for sign, advice in _ADVICE.items() if re.search(sign, message)), None)
    if isinstance(error, SystemExit):
        message = f"it ended the program, with {error.code!r}"
    return InvalidValue(f"{what}: {name}{': ' if message else ''}{message}{place}", hint=hint)


_ADVICE = {
    "UninitializedParameter": "a profile needs a model without lazy modules: say their sizes",
    "FlexAttention": "use scaled_dot_product_attention in its place, or profile --forward-only",
    "(?i)cuda|nvidia": "the profile runs on fake CPU tensors: leave the device out of the factory",
    "(?i)FakeTensor|meta tensor|numpy": (
        "a profile has shapes and no values: leave out what reads a tensor's memory"
    ),
}
_FAKE = {
    "DataDependentOutputException": (
        "needs the value of a tensor, and a profile has only shapes",
        "compute that number with plain Python, or give the profile a factory that leaves it out",
    ),
    "DynamicOutputShapeException": (
        "makes a tensor whose shape depends on values, and a profile has only shapes",
        "use torch.where or a fixed capacity there, or a factory with a stand-in of usual shape",
    ),
    "UnsupportedOperatorException": (
        "cannot run on fake tensors",
        "give the operator a shape function with torch.library.register_fake",
    ),
    "UnsupportedFakeTensorException": (
        "cannot run on fake tensors",
        "give the profile a factory that leaves this operator out",
    ),
}


def _shortened(message: str) -> str:
    lines = [line.rstrip() for line in message.strip().splitlines() if line.strip()]
    short = "\n  ".join(lines[:4])
    return short if len(short) <= _MESSAGE else short[:_MESSAGE] + "…"


def _place(error: BaseException, folder: Path) -> str:
    """The innermost line of theirs: in their folder, else in what they installed."""
    if isinstance(error, SyntaxError) and error.filename:
        source = (error.text or "").strip()
        return _line(Path(error.filename), error.lineno or 0, source, folder)
    libraries = [Path(sysconfig.get_path(key)) for key in ("stdlib", "purelib", "platlib")]
    installed: traceback.FrameSummary | None = None
    own: traceback.FrameSummary | None = None
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if frame.filename.startswith("<") or path.is_relative_to(_OURS):
            continue
        if not any(path.is_relative_to(library) for library in libraries):
            own = frame
        elif "torch" not in path.parts and "site-packages" in path.parts:
            installed = frame
    frame_shown = own or installed
    if frame_shown is None:
        return ""
    line = frame_shown.lineno or 0
    source = linecache.getline(frame_shown.filename, line).strip()
    return _line(Path(frame_shown.filename), line, source, folder)


def _line(path: Path, line: int, source: str, folder: Path) -> str:
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path
    return f"\n  {shown}, line {line}: {source}" if source else f"\n  {shown}, line {line}"
