"""From what was planned, now or earlier, to what is asked for; the rim that reads files."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.export.asked import READ, Asked
from tradewind.planning import document
from tradewind.planning.serving import document as serving
from tradewind.planning.words import what_binds

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.catalog import Catalog
    from tradewind.model import Workload
    from tradewind.model.plan import Plan, Plans
    from tradewind.model.serveplan import ServingPlan, ServingPlans

_MOST = 5_000_000
"""Of one of the job's files."""


class Where(NamedTuple):
    folder: Path
    """Of the job."""
    out: Path
    """Of the export."""
    file: Path | None = None
    """The workload, or the plan."""

    @property
    def path(self) -> str:
        """From the one to the other, as both lie now."""
        return self._seen(self.folder)

    @property
    def file_path(self) -> str:
        return self._seen(self.file) if self.file is not None else ""

    def _seen(self, path: Path) -> str:
        return os.path.relpath(path.absolute(), self.out.absolute())


def of_plans(plans: Plans, catalog: Catalog, command: str, where: Where) -> Asked:
    if plans.best is None:
        raise NotFound("no plan keeps every limit", hint=what_binds(plans))
    return _asked(plans.workload, plans.made_at, catalog, command, where, plan=plans.best)


def of_serving(plans: ServingPlans, catalog: Catalog, command: str, where: Where) -> Asked:
    if plans.best is None:
        raise NotFound(
            "no replicas keep every target and limit",
            hint="tradewind plan says which of them would have to give way",
        )
    return _asked(plans.workload, plans.made_at, catalog, command, where, served=plans.best)


def of_saved(text: str, origin: str, catalog: Catalog, command: str, where: Where) -> Asked:
    """Of what `tradewind plan --out` has saved or `--json` has printed."""
    with suppress(ValueError, RecursionError):
        if serving.is_one(json.loads(text)):
            served = serving.read(text, origin)
            return _asked(
                served.workload, served.made_at, catalog, command, where, served=served.plan
            )
    saved = document.read(text, origin)
    return _asked(saved.workload, saved.made_at, catalog, command, where, plan=saved.plan)


def _asked(
    workload: Workload,
    made_at: datetime,
    catalog: Catalog,
    command: str,
    where: Where,
    *,
    plan: Plan | None = None,
    served: ServingPlan | None = None,
) -> Asked:
    bought = [plan] if plan is not None else served.pools if served is not None else ()
    names = sorted({each.accelerator for each in bought})
    for name in names:
        if name not in catalog.accelerators:
            raise NotFound(f"no accelerator is called {name!r}", hint="tradewind accelerators")
    return Asked(
        workload=workload,
        made_at=made_at,
        command=command,
        plan=plan,
        serving=served,
        chips={name: catalog.accelerators[name] for name in names},
        files=_files(where.folder),
        job_path=where.path,
        file_path=where.file_path,
        imports_us=_imports_us(where.folder),
    )


def is_saved(text: str) -> bool:
    return text.lstrip().startswith("{")


def again(arguments: Sequence[str]) -> str:
    """The command as it was typed, quoted for a shell."""
    return shlex.join(["tradewind", "export", *arguments])


def _files(folder: Path) -> dict[str, str]:
    """What kinds look into, where it is there and is text."""
    found = {}
    for name in READ:
        path = folder / name
        try:
            if path.stat().st_size > _MOST:
                raise InvalidValue(f"{path} is larger than any such file", hint="--folder DIR")
            found[name] = path.read_text("utf-8")
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise InvalidValue(f"{path} is no text in UTF-8") from None
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
    return found


_IMPORT = re.compile(r"^\s*(?:import|from)\s+tradewind\b", re.MULTILINE)
_MOST_SCRIPTS = 200


def _imports_us(folder: Path) -> bool:
    """By the scripts that lie in the folder itself; what cannot be read says nothing."""
    for path in sorted(folder.glob("*.py"))[:_MOST_SCRIPTS]:
        with suppress(OSError, UnicodeDecodeError):
            if path.stat().st_size <= _MOST and _IMPORT.search(path.read_text("utf-8")):
                return True
    return False
