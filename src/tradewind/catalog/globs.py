"""Globs in the small tables of `data/`, tried on every type of machine when a plan is made."""

from __future__ import annotations

from fnmatch import fnmatchcase


def fits(name: str, glob: str) -> bool:
    """Both in small letters. Most globs are one word and a star, for which no pattern has to be
    compiled and tried."""
    if glob == "*":
        return True
    stem = glob.removesuffix("*")
    if any(sign in stem for sign in "*?["):
        return fnmatchcase(name, glob)
    return name == glob if stem == glob else name.startswith(stem)
