"""The names that a workload may use, handed in by whoever has a catalog: this room has none.

Without them names are taken as they are written; what is made then is checked when it is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Protocol

from tradewind.base.errors import InvalidValue
from tradewind.model import areas
from tradewind.model.areas import countries


class Match(Protocol):
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def count(self) -> float | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    regions: Mapping[str, Collection[str]]
    """By provider; a provider without regions has an empty collection."""
    accelerators: Collection[str]
    resolve: Callable[[str], Match]
    """The accelerators that a spelling means. Raises what the user is to be told."""
    provider_name: Callable[[str], str] = str.lower
    """Our name for a provider: `google` → `gcp`."""
    model: Callable[[str], object] | None = None
    """Raises where no model has that name."""
    country_of: Callable[[str, str], str] = lambda provider, region: ""
    """Two letters, of a provider's region; empty where it is not known."""

    def provider(self, text: str) -> str:
        """Our name for it; a glob must fit some provider."""
        name = self.provider_name(text)
        if not _some(name, self.regions):
            raise _unknown("provider", text, self.regions)
        return name

    def region(self, text: str) -> str:
        """`eu-*`, or `aws/eu-west-1` with our name of the provider; `EU`, `Asia` and `DE` are
        areas, in which some region must be."""
        if lands := countries(text):
            there = {self.country_of(p, region) for p in self.regions for region in self.regions[p]}
            if lands & there:
                return areas.SPELLED.get(text.strip().upper(), text.strip())
        places = {f"{p}/{region}": p for p in self.regions for region in self.regions[p]}
        bare = {region for regions in self.regions.values() for region in regions}
        if _some(text, bare):
            return text
        head, slash, tail = text.partition("/")
        named = f"{self.provider_name(head)}/{tail}" if slash else text
        if slash and _some(named, places):
            return named
        provider = self.provider_name(head)
        if slash and provider in self.regions:
            raise _unknown(f"region of {provider}", tail, self.regions[provider])
        everywhere = bare | set(areas.SPELLED.values())
        raise _unknown("region", text, everywhere | set(places) if slash else everywhere)

    def excluded(self, text: str) -> str:
        """A provider or a region."""
        name = self.provider_name(text)
        if _some(name, self.regions):
            return name
        try:
            return self.region(text)
        except InvalidValue:
            everything = set(self.regions) | {r for some in self.regions.values() for r in some}
            raise _unknown("provider or region", text, everything) from None

    def accelerator_pattern(self, text: str) -> tuple[str, ...]:
        """A glob as it is; a spelling as the accelerators that it means."""
        if any(c in text for c in "*?["):
            if not _some(text, self.accelerators):
                raise _unknown("accelerator", text, self.accelerators)
            return (text,)
        match = self.resolve(text)
        if match.count is not None:
            raise InvalidValue(
                f"{text!r} has a number; a limit names the kind alone",
                hint=f"write {match.names[0]}; max_accelerators bounds how many",
            )
        return match.names


def _some(pattern: str, names: Collection[str]) -> bool:
    lowered = pattern.lower()
    return any(fnmatchcase(name.lower(), lowered) for name in names)


def _unknown(kind: str, text: str, names: Collection[str]) -> InvalidValue:
    if any(c in text for c in "*?["):
        return InvalidValue(f"no {kind} fits {text!r}")
    spellings = {name.lower(): name for name in sorted(names)}
    close = [spellings[c] for c in get_close_matches(text.lower(), spellings, n=3)]
    some = ", ".join(sorted(names)[:8]) + (" …" if len(names) > 8 else "")
    hint = f"did you mean {' or '.join(close)}?" if close else f"for example {some}"
    return InvalidValue(f"no {kind} is called {text!r}", hint=hint if names else None)
