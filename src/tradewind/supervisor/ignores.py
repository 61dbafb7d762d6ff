"""What of a folder is ignored: git's rules, read where git reads them, and `.tradewindignore`.

In every folder from the root of the work tree down, `.gitignore` and then `.tradewindignore`, which
has the last word; for the whole tree `.git/info/exclude` and the file that `core.excludesFile` of
git names. The nearest rule that matches decides, in a file the last one. Without a work tree it is
the files of the folder itself and below.

pathspec knows git's patterns. It also lets a pattern for a folder match all that is in it; git does
not, it does not look into folders that are ignored. The difference shows where a folder is taken in
again (`!keep/`) and its files are ignored by another rule (`*.log`), so `_Rule` asks for the entry
itself.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.base.errors import NoAccess

if TYPE_CHECKING:
    from pathspec.pattern import Pattern

GIT, OURS = ".gitignore", ".tradewindignore"
_NOBODY = "\x01"
"""A name that no pattern means: what matches it beside another matches by its folder, or all."""
_GIT_S = 10


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    pattern: Pattern
    by_name: bool
    """Without a slash: it is for names, in whatever folder."""
    deep: bool
    """`**` and then only stars: it is for everything below."""
    ours: bool = False
    """Of `.tradewindignore`: who wrote it meant what is sent with a job."""

    def matches(self, name: str) -> bool:
        """`name` is the entry's path from the rule's folder; a folder's ends in a slash."""
        bare = name.rstrip("/")
        folder, _, own = bare.rpartition("/")
        slash = name[len(bare) :]
        if self.by_name:
            return self._fits(own + slash)
        if self.text.endswith("/**"):
            return self._fits(bare)
        if not self._fits(name):
            return False
        inherited = self._fits(f"{folder}/") and self._fits(f"{folder}/{_NOBODY}")
        return self.deep or not folder or not inherited

    def _fits(self, name: str) -> bool:
        return self.pattern.match_file(name) is not None


@dataclass(frozen=True, slots=True)
class _File:
    below: str
    """The folder whose rules they are, from the root of the tree: "" or ending in a slash."""
    rules: tuple[_Rule, ...]
    taken_in: tuple[_Rule, ...] = ()
    """What `.tradewindignore` names with `!`."""

    def verdict(self, name: str) -> _Rule | None:
        inner = name[len(self.below) :]
        return next((rule for rule in reversed(self.rules) if rule.matches(inner)), None)


@dataclass(frozen=True, slots=True)
class Ignores:
    """The rules that hold in one folder."""

    prefix: str
    """The folder from the root of the tree: "" or ending in a slash."""
    files: tuple[_File, ...]
    """The nearest first."""

    def inside(self, folder: Path, name: str) -> Ignores:
        """In a folder of this name in this one, whose own files count too."""
        below = self.prefix + name
        own = _of_folder(folder, below)
        return Ignores(below, (own, *self.files) if own else self.files)

    def ignored(self, name: str) -> bool:
        """Of an entry of this folder; with a slash behind it, if it is a folder."""
        rule = self._rule(name)
        return rule is not None and bool(rule.pattern.include)

    def ignored_by_git(self, name: str) -> bool:
        """The same, and nobody has said so for the sake of what is sent."""
        rule = self._rule(name)
        return rule is not None and bool(rule.pattern.include) and not rule.ours

    def _rule(self, name: str) -> _Rule | None:
        """The one that decides."""
        found = (file.verdict(self.prefix + name) for file in self.files)
        return next((rule for rule in found if rule is not None), None)

    def taken_in(self, name: str) -> bool:
        """Whether `.tradewindignore` names this file with `!`: its name, not only its folder's, and
        not everything."""
        whole = self.prefix + name
        return any(
            rule.matches(whole[len(file.below) :])
            for file in self.files
            for rule in file.taken_in
            if (last := rule.text.rpartition("/")[2]).strip("*") and fnmatchcase(name, last)
        )


def of(folder: Path) -> Ignores:
    """Of a folder that is packed; its own files are among them."""
    root = _work_tree(folder)
    if root is None:
        return Ignores("", ()).inside(folder, "")
    names = [f"{part}/" for part in folder.relative_to(root).parts]
    wide = [
        _of_texts(_excluded_globally(root)),
        _of_texts(_read(_git_folder(root) / "info/exclude")),
    ]
    rules = Ignores("", tuple(_File("", each) for each in reversed(wide) if each))
    if not names:
        return rules.inside(folder, "")
    here, is_ignored = root, False
    for depth, name in enumerate(names):
        rules = rules.inside(here, names[depth - 1] if depth else "")
        is_ignored = is_ignored or rules.ignored(name)
        here /= name
    if is_ignored:
        # Its user has named it nevertheless. What ignores the folder as such does not count then.
        rules = Ignores(rules.prefix, tuple(_without(rules.files, "".join(names))))
    return rules.inside(folder, names[-1])


def _without(files: Iterable[_File], folder: str) -> Iterable[_File]:
    for file in files:
        inner = folder[len(file.below) :]
        rules = tuple(r for r in file.rules if r.pattern.match_file(inner) is None)
        yield _File(file.below, rules, file.taken_in)


def _of_folder(folder: Path, below: str) -> _File | None:
    ours = _read(folder / OURS)
    rules = (*_of_texts(_read(folder / GIT)), *_of_texts(ours, ours=True))
    taken_in = _of_texts(line[1:] for line in ours if line.startswith("!"))
    return _File(below, rules, taken_in) if rules else None


def _of_texts(lines: Iterable[str], *, ours: bool = False) -> tuple[_Rule, ...]:
    from pathspec import GitIgnoreSpec

    found = []
    for line in lines:
        try:
            patterns = list(GitIgnoreSpec.from_lines([line]).patterns)
        except ValueError:  # such as a single `!`, which means nothing to git either
            continue
        text = line.removeprefix("!").rstrip()
        last = text.rpartition("/")[2]
        deep = "**" in text and not last.strip("*")
        by_name = "/" not in text.removeprefix("**/").rstrip("/")
        found += [
            _Rule(text, each, by_name, deep, ours) for each in patterns if each.include is not None
        ]
    return tuple(found)


def _read(path: Path) -> list[str]:
    """Lines as git takes them: only a line feed ends one."""
    try:
        if not path.is_file():
            return []
        text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise NoAccess(
            f"{path} cannot be read: {error.strerror or error}", hint="it says what is not sent"
        ) from None
    return [line.removesuffix("\r") for line in text.split("\n")]


def _work_tree(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _git_folder(root: Path) -> Path:
    """Where `info/exclude` is. In a linked work tree and in a submodule `.git` is a file."""
    git = root / ".git"
    for line in _read(git):
        if line.startswith("gitdir: "):
            git = root / line.removeprefix("gitdir: ")
    common = _read(git / "commondir")
    return git / common[0] if common else git


def _excluded_globally(root: Path) -> list[str]:
    """The lines of the user's own file. Git itself says which: its configuration is in several
    files, which may include others. Reading it runs nothing of the folder's."""
    try:
        asked = subprocess.run(
            ["git", "config", "--type=path", "--get", "core.excludesFile"],
            cwd=root, capture_output=True, text=True, errors="surrogateescape", check=False,
            timeout=_GIT_S,
        )  # fmt: skip
        if asked.returncode == 0:
            return _read(root / asked.stdout.removesuffix("\n"))
    except (OSError, subprocess.TimeoutExpired):
        pass  # there is no git: its default, then
    try:
        config = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    except RuntimeError:
        return []
    return _read(Path(config) / "git" / "ignore")
