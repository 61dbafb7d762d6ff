"""What is to be trained, from what a user writes: a name, or a file of one of three kinds.

    gpt2-xl, meta-llama/Llama-3.1-8B, resnet-50      the registry
    a Hugging Face config.json, or its folder        huggingface
    YAML (or JSON) with a shape's numbers            shapefile
    what `tradewind profile --out FILE` wrote        model.profile

Files are told apart by what is in them, not by their names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tradewind.base import yamltree
from tradewind.base.errors import BadFile, NoAccess
from tradewind.estimate import huggingface, registry, shapefile
from tradewind.estimate.columns import Model
from tradewind.estimate.config import HEADS, LAYERS, WIDTH
from tradewind.model import profile as profiles

_SUFFIXES = (".json", ".yaml", ".yml")
_LARGEST = 50_000_000  # bytes; a profile lists every layer
_SHAPE_WORDS = set(shapefile.FIELDS) - {"name", "kind", "note"}
# What only the configurations of others have.
_CONFIG_WORDS = {*WIDTH, *LAYERS, *HEADS, "model_type", "architectures", "text_config"}
_CONFIG_WORDS -= _SHAPE_WORDS
_KINDS = (
    "a Hugging Face config.json, a YAML file with a shape's numbers (layers, d_model, n_heads …) "
    "or a profile written by `tradewind profile --out FILE.json`"
)


def load(text: str) -> Model:
    """Raises NotFound for a name that is not known, BadFile and NoAccess for a file."""
    path = _path(text)
    if path is None:
        return registry.find(text)
    origin, content = str(path), _text(path)
    if content.lstrip().startswith(("{", "[")):
        fields = _json(content)
        if fields.get("kind") == profiles.KIND:
            return profiles.from_json(content, origin)
        if _is_config(fields) or not fields:
            return huggingface.from_config(path)
        if not _is_shape(fields):
            raise _neither(origin)
    elif not _is_shape(_names(content, origin)):
        raise _neither(origin)
    return shapefile.read(content, origin, path.stem)


def _path(text: str) -> Path | None:
    """Where it is meant as a file: it looks like one, or there is one."""
    path = Path(text).expanduser() if text.startswith("~") else Path(text)
    try:
        if path.is_dir():
            inside = path / "config.json"
            if inside.exists() or text.startswith((".", "/", "~")) or text.endswith("/"):
                return inside
            return None
        there = path.exists()
    except (OSError, ValueError):
        return None
    looks = text.lower().endswith(_SUFFIXES) or text.startswith(("./", "../", "/", "~"))
    return path if there or looks else None


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise BadFile(f"{path} is not a plain file")
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except FileNotFoundError:
        raise NoAccess(f"there is no file {path}") from None
    except OSError as error:
        raise NoAccess(f"cannot read {path}: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise BadFile(f"{path} is larger than 50 MB: are these the weights?", hint=f"give {_KINDS}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise BadFile(f"{path} is not text", hint=f"give {_KINDS}")
    if not text.strip():
        raise BadFile(f"{path} is empty", hint=f"give {_KINDS}")
    return text


def _json(content: str) -> dict[str, Any]:
    """Empty where it is no JSON, or no mapping."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _names(content: str, origin: str) -> dict[str, Any]:
    found = yamltree.parse(content, origin).value
    return found if isinstance(found, dict) else {}


def _is_shape(fields: dict[str, Any]) -> bool:
    return bool(set(fields) & _SHAPE_WORDS)


def _is_config(fields: dict[str, Any]) -> bool:
    return bool(set(fields) & _CONFIG_WORDS)


def _neither(origin: str) -> BadFile:
    return BadFile(f"{origin} does not describe a model", hint=f"give {_KINDS}")
