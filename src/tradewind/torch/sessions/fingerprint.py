"""What a checkpoint was made with: code, configuration, versions. Compared when it is continued.

A run that goes on with other code than it began with is not wrong, but nobody should find out by
the loss. Code is every file of the user's that is imported: what lies in the folder of the script
or in the one it was started in, and is not installed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from pathlib import Path
from typing import Any


def fingerprint(config: Any, facts: dict[str, Any]) -> dict[str, Any]:
    import platform

    import torch

    return {
        "code": code(),
        "config": _plain(config),
        "facts": {
            **facts,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
    }


def code() -> dict[str, str]:
    """Hashes of the user's own files, by their names below their folder."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    folders = [Path(main).resolve().parent] if main else []
    folders.append(Path.cwd().resolve())
    apart = [Path(sysconfig.get_path(key)).resolve() for key in ("stdlib", "purelib", "platlib")]
    apart.append(Path(__file__).resolve().parents[2])  # our own
    found: dict[str, str] = {}
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if not isinstance(name, str) or not name.endswith(".py"):
            continue
        path = Path(name).resolve()
        folder = next((f for f in folders if path.is_relative_to(f)), None)
        if folder is None or any(path.is_relative_to(other) for other in apart):
            continue
        try:
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()[
                :16
            ]
        except OSError:
            continue
    return found


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What has changed since the checkpoint, a line each."""
    said = []
    for name in sorted({*before["code"], *now["code"]}):
        old, new = before["code"].get(name), now["code"].get(name)
        if old and new and old != new:
            said.append(f"{name} has changed")
        elif old and not new:
            said.append(f"{name} is not used any more")
        elif new and not old:
            said.append(f"{name} is new")
    for kind in ("config", "facts"):
        said += _changed(before[kind], now[kind], "")
    return said


def _changed(old: Any, new: Any, name: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        said = []
        for key in sorted({*old, *new}, key=str):
            inner = f"{name}.{key}" if name else str(key)
            said += _changed(old.get(key), new.get(key), inner)
        return said
    return [] if old == new else [f"{name or 'the configuration'} was {old!r} and is {new!r}"]


def _plain(config: Any) -> Any:
    """As JSON has it: argparse's namespaces and dataclasses too."""
    if config is None:
        return {}
    if not isinstance(config, dict) and hasattr(config, "__dict__"):
        config = vars(config)
    return json.loads(json.dumps(config, default=str, sort_keys=True))
