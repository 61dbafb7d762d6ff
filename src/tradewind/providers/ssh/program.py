"""there/, and what it needs, as one text: a Python on a host is given it over the connection, and
then a question.

The command that starts that Python is one line of sh in single quotes, whatever shell the user has
there; it has none of the characters that csh or fish would take for theirs.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

_THERE = f"{__package__}.there"
ORDER = (
    "tradewind.base.processes",
    f"{_THERE}.moments",
    f"{_THERE}.folder",
    f"{_THERE}.processes",
    f"{_THERE}.drivers",
    f"{_THERE}.gpus",
    f"{_THERE}.kits",
    f"{_THERE}.relay",
    f"{_THERE}.keeper",
    f"{_THERE}.machines",
    f"{_THERE}.look",
    f"{_THERE}.main",
)
"""Each imports only what is before it."""
NO_PYTHON = "tradewind-no-python"
_LOADER = """\
import json, sys, types

def module(name, text=None):
    parent, _, child = name.rpartition(".")
    if parent and parent not in sys.modules:
        module(parent)
    made = types.ModuleType(name)
    made.__path__ = []
    sys.modules[name] = made
    if parent:
        setattr(sys.modules[parent], child, made)
    if text is not None:
        exec(compile(text, name, "exec"), made.__dict__)

for name, text in json.loads(SOURCES):
    module(name, text)
sys.modules[name].main()
"""


@cache
def text() -> bytes:
    packed = json.dumps([(name, _source(name)) for name in ORDER])
    return f"SOURCES = {packed!r}\n{_LOADER}".encode()


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    return resources.files(package).joinpath(f"{module}.py").read_text("utf-8")


def told(question: object) -> bytes:
    """What goes over the connection."""
    program = text()
    return b"%d\n%s%s\n" % (len(program), program, json.dumps(question).encode())


def command(python: str = "") -> str:
    """`python`: the folder of one that comes before all others there."""
    first = f"PATH={python}:$PATH; export PATH; " if python else ""
    return (
        f"sh -c '{first}for p in python3 python3.14 python3.13 python3.12 python3.11; do"
        ' if "$p" -c "import sys; sys.exit(sys.version_info < (3, 11))" > /dev/null 2>&1; then'
        ' exec "$p" -I -c "import sys; i = sys.stdin.buffer; exec(i.read(int(i.readline())))";'
        f" fi; done; echo {NO_PYTHON}'"
    )
