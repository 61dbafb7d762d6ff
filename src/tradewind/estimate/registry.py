"""Well-known models by name, in any of the spellings people use.

`meta-llama/Llama-3.1-8B-Instruct`, `llama3.1-8b` and `LLAMA 3.1 8B` are one model. A name is cut
into atoms (`llama`, `3.1`, `8b`); it means the model that has just those, else every model that has
all of them, and then, if they are several, the choices are listed. `find` raises NotFound in either
case; nothing is ever guessed.

The facts are in `data/models.json`, in the words of the models' own config files, and
`huggingface` makes shapes of them: what is right for a user's file is right for these too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import format_names
from tradewind.estimate.huggingface import from_config
from tradewind.model.shape import Shape, Work

_TABLE = Path(__file__).parent / "data" / "models.json"
_LONGEST = 120
_SHOWN = 12  # choices in a message

# Who published it, and what else tells nothing about the shape.
_NOISE = frozenset(
    "meta ai mistralai google facebook eleutherai microsoft nvidia bigscience mosaicml openai hf "
    "huggingfacetb huggingface tiiuae bigcode stabilityai stability allenai xai databricks cohere "
    "cohereforai 01 zai thudm zhipu moonshotai torchvision timm openlm model models community "
    "runwayml compvis".split()
)
# Parts of some names that are mere decoration on others: words, numbers, and last the versions are
# dropped while nothing fits with them, for `Mistral-7B-Instruct-v0.2` is not the one without.
_DECORATION = (
    re.compile(
        r"base|instruct|chat|it|pt|uncased|cased|preview|thinking|en|coder|math|sft|dpo|bf16|fp\d+"
    ),
    re.compile(r"\d+k|\d{4}|224|256"),
    re.compile(r"v\d(\.\d+)?"),
)
# bf16 | 8x7b, 32x4d | a3b | BLOOM's 7b1 | 4e1t | 8b, 1.5b, 4k | v0.1, v3 | 3.1 | words
_ATOM = re.compile(
    r"bf16|fp\d+|\d+x\d+(?:\.\d+)?[a-z]?|(?<![a-z])a\d+(?:\.\d+)?b(?![a-z])|\d+b\d+|\d+e\d+t"
    r"|\d+(?:\.\d+)?[bmkte](?![a-z0-9])|(?<![a-z])v\d+(?:\.\d+)?|\d+(?:\.\d+)?|[a-z]+|\+"
)
# A size alone is no name, even if only one model we know has it.
_SIZE = re.compile(r"a?\d[\d.x]*[bmkt]?\d?")


class _Entry(NamedTuple):
    name: str
    facts: dict[str, Any]
    note: str
    is_work: bool


class _Table:
    """Names and atoms of every model; shapes are made when asked for."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.entries: dict[str, _Entry] = {}
        self._atoms: dict[str, frozenset[str]] = {}
        self._exact: dict[frozenset[str], str] = {}
        self._run_together: dict[str, set[str]] = {}
        aliases: dict[str, Sequence[str]] = {}
        for family in [*data["families"], data["works"]]:
            is_work = family is data["works"]
            aliases |= family.get("aliases", {})
            for name, row in family["models"].items():
                facts = dict(family.get("common", {}))
                facts |= zip(family["columns"], row, strict=False)
                if len(row) > len(family["columns"]):
                    facts |= row[-1]
                note = family.get("notes", {}).get(name) or family.get("note", "")
                assert name not in self.entries, name
                self.entries[name] = _Entry(name, facts, note, is_work)
        for name in self.entries:
            self._atoms[name] = _cut(name)
            self._add(name, name)
        for name, others in aliases.items():
            for other in others:
                self._add(other, name)

    def _add(self, spelling: str, name: str) -> None:
        atoms = _cut(spelling)
        taken = self._exact.setdefault(atoms, name)
        assert taken == name, f"{spelling} is both {taken} and {name}"
        self._run_together.setdefault(_run_together(spelling), set()).add(name)

    def match(self, text: str) -> list[str]:
        for spelling in _spellings(text):
            for atoms in _plainer(_cut(spelling)):
                if atoms in self._exact:
                    return [self._exact[atoms]]
                found = [name for name, full in self._atoms.items() if atoms <= full]
                if found:
                    return found
        # `deepseekv3` and `llama31-8b` cannot be cut into atoms, but name just one model.
        for spelling in _spellings(text):
            if together := self._run_together.get(_run_together(spelling)):
                return sorted(together)
        return []

    def nearest(self, text: str) -> tuple[str, ...]:
        import difflib

        plain = {re.sub(r"[^a-z0-9]", "", name): name for name in self.entries}
        wanted = re.sub(r"[^a-z0-9]", "", text.lower().rsplit("/", 1)[-1])
        close = difflib.get_close_matches(wanted, plain, n=3, cutoff=0.5)
        return tuple(plain[c] for c in close)


def find(name: str) -> Shape | Work:
    """The model of that name. NotFound, with choices, if there is none or there are several."""
    text = name.strip()
    if not re.search(r"\w", text) or len(text) > _LONGEST:
        raise InvalidValue(f"{text[:40]!r} is not the name of a model", hint="for example gpt2-xl")
    table = _table()
    found = table.match(text)
    if len(found) == 1 and not _SIZE.fullmatch(text.lower()):
        return _build(found[0])
    if found:
        raise NotFound(
            f"{text!r} is ambiguous: it may be {format_names(found, _SHOWN)}",
            hint=f"name one of them, for example {found[0]}",
            choices=found,
        )
    choices = table.nearest(text)
    raise NotFound(
        f"no model is called {text!r}",
        hint=(f"did you mean {' or '.join(choices)}? " if choices else "")
        + "The path of a config.json serves for any other",
        choices=choices,
    )


def names() -> list[str]:
    """Our name for every model we know."""
    return list(_table().entries)


@lru_cache(maxsize=1)
def _table() -> _Table:
    return _Table(json.loads(_TABLE.read_bytes()))


@lru_cache(maxsize=512)
def _build(name: str) -> Shape | Work:
    entry = _table().entries[name]
    if entry.is_work:
        return _work(entry)
    shape = from_config(entry.facts, name=name)
    if not entry.note:
        return shape
    return replace(shape, note="; ".join(filter(None, (entry.note, shape.note))))


def _work(entry: _Entry) -> Work:
    facts = entry.facts
    return Work(
        name=entry.name,
        kind=facts["kind"],
        params=facts["params"],
        forward_flops_per_sample=facts["gmacs"] * 2e9,
        activation_bytes_per_sample=facts["activation_mb"] * 1e6,
        moved_bytes_per_sample=facts["moved_mb"] * 1e6,
        sample=facts["sample"],
        input=facts["input"],
        note=entry.note,
    )


def _cut(text: str) -> frozenset[str]:
    atoms: Iterable[str] = _ATOM.findall(text.lower())
    return frozenset(atom for atom in atoms if atom not in _NOISE)


def _run_together(text: str) -> str:
    """Letters and digits alone, without the words that are mere decoration."""
    words = re.split(r"[^a-z0-9.]+", text.lower())
    kept = [word for word in words if not _DECORATION[0].fullmatch(word)]
    return re.sub(r"[^a-z0-9]", "", "".join(kept))


def _plainer(atoms: frozenset[str]) -> Iterator[frozenset[str]]:
    """The atoms, then with less and less decoration, while something is left."""
    if atoms:
        yield atoms
    for decoration in _DECORATION:
        plain = frozenset(atom for atom in atoms if not decoration.fullmatch(atom))
        if plain and plain != atoms:
            yield plain
        atoms = plain


def _spellings(text: str) -> tuple[str, ...]:
    """As it is, and without the publisher in front: whoever that is, the model is the same."""
    tail = text.rsplit("/", 1)[-1]
    return (text, tail) if tail != text and len(tail) > 2 else (text,)
