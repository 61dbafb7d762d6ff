"""What may stand where a shell completes: runs, files, names of the catalog.

A parameter of free text says by its metavar what it takes, in help texts; here the same word finds
what can be offered. So no command needs to know that shells complete. All of it must be quick, and
silent: what cannot be read at once is not offered. Of stores, folders only: nobody waits for a
bucket between two letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from tradewind.base.errors import TradewindError

Finder = Callable[[click.Context], Iterable[str]]
_MOST = 200
"""More are of no use to who reads them, and take the shell a while."""


class Names(click.ParamType[str]):
    """Takes any text, as before, and offers those that begin like it."""

    name = "text"

    def __init__(self, find: Finder) -> None:
        self._find = find

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        # The last of several, as in `-p aws,gc`.
        before, comma, last = incomplete.rpartition(",")
        with suppress(TradewindError, OSError):
            found = [name for name in self._find(ctx) if name.lower().startswith(last.lower())]
            return [CompletionItem(f"{before}{comma}{name}") for name in found[:_MOST]]
        return []


class Paths(click.ParamType[str]):
    """The shell itself knows best which there are."""

    name = "text"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self._kind)]


def equip(command: click.Command) -> None:
    """Gives each parameter of free text what can be offered for it."""
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        equip(each)
    for param in command.params:
        if isinstance(param.type, click.types.StringParamType):
            param.type = _kind(command, param) or param.type


def _kind(command: click.Command, param: click.Parameter) -> click.ParamType[Any] | None:
    word = (param.metavar or param.human_readable_name).strip("[].…").upper()
    if word == "RUN":
        return Names(_RUNS.get(command.name or "", _runs))
    return _BY_NAME.get(param.name or "") or _BY_WORD.get(word)


# -- runs ------------------------------------------------------------------------------------------


def _store(ctx: click.Context) -> Any:
    """None: it is a bucket, or cannot be opened."""
    from tradewind import store as stores

    url = ctx.params.get("store_url") or ctx.params.get("url") or stores.default_url()
    scheme, separator, _ = str(url).partition("://")
    return stores.open(url) if not separator or scheme == "file" else None


def _runs(ctx: click.Context) -> list[str]:
    """The newest first."""
    from tradewind.model import places

    store = _store(ctx)
    ids = filter(places.is_run_id, store.folders(places.RUNS)) if store else []
    return sorted(ids, key=lambda run_id: run_id.rsplit("-", 2)[-2:], reverse=True)


def _live(ctx: click.Context) -> list[str]:
    from tradewind.model import places

    store = _store(ctx)
    marks = {places.marked(key)[0] for key in store.list_after(places.LIVE)} if store else set()
    return [run_id for run_id in _runs(ctx) if run_id in marks]


def _over(ctx: click.Context) -> list[str]:
    live = set(_live(ctx))
    return [run_id for run_id in _runs(ctx) if run_id not in live]


_RUNS = {"stop": _live, "interrupt": _live, "watch": _live, "resume": _over}


# -- the catalog -----------------------------------------------------------------------------------


def _accelerators(ctx: click.Context) -> list[str]:
    from tradewind import catalog

    return list(catalog.load(account=False).accelerators)


def _providers(ctx: click.Context) -> list[str]:
    from tradewind import catalog

    return list(catalog.load(account=False).providers)


def _types(ctx: click.Context) -> list[str]:
    from tradewind import catalog

    found = catalog.load(account=False).table.columns["instance_type"].values
    return sorted(name for name in found if " " not in name)  # shells would cut them


def _models(ctx: click.Context) -> list[str]:
    from tradewind.estimate import registry

    return registry.names()


def _markets(ctx: click.Context) -> list[str]:
    from tradewind.model import MARKETS

    return list(MARKETS)


def _topics(ctx: click.Context) -> list[str]:
    from tradewind.cli.help import topics

    return topics.names()


_FILE, _FOLDER = Paths("file"), Paths("dir")
_BY_NAME: dict[str, click.ParamType[Any]] = {
    "accelerator": Names(_accelerators),
    "named": Names(_accelerators),
    "gpus": Names(_accelerators),
    "provider": Names(_providers),
    "market": Names(_markets),
}
_BY_WORD: dict[str, click.ParamType[Any]] = {
    **dict.fromkeys(("FILE", "WORKLOAD", "WORKLOAD.YAML", "WORKLOAD|PLAN|COMMAND"), _FILE),
    **dict.fromkeys(("DIR", "FOLDER", "URL"), _FOLDER),
    "ACCELERATORS": Names(_accelerators),
    "TOPIC|TERM|EXIT_CODE|ERROR": Names(_topics),
    "MODEL": Names(_models),
    "TYPE": Names(_types),
}
