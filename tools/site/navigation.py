"""The sidebar, from lists of links that pages have anyway.

docs/README.md: each `## section` is a part of the sidebar, and the first link of each item of its
lists an entry. Any other README.md below docs/ or examples/: the pages that it links in its own
folder stand below it. So there is one order, readable on GitHub; a page that is in no list is a
warning of Sphinx's, and warnings are errors. An entry is named as in the list.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from sphinx.application import Sphinx

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:]+\.md)\)")
ITEM = re.compile(r"^- ", re.MULTILINE)


def _entry(name: str, target: str, folder: str) -> str:
    page = posixpath.normpath(posixpath.join(folder, target)).removesuffix(".md")
    return f"{name.replace('`', '')} </{page}>"


def _toctree(entries: list[str], caption: str = "") -> str:
    head = f":caption: {caption}\n" if caption else ""
    return "\n\n```{toctree}\n:hidden:\n" + head + "\n" + "\n".join(entries) + "\n```\n"


def _of_root(text: str) -> Iterator[str]:
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        caption, _, rest = section.partition("\n")
        found = [LINK.search(item) for item in ITEM.split(rest)[1:]]
        entries = [_entry(link[1], link[2], "docs") for link in found if link]
        if entries:
            yield _toctree(entries, caption)


def _of_folder(text: str, folder: str) -> Iterator[str]:
    below = [(name, target) for name, target in LINK.findall(text) if not target.startswith("..")]
    if below:
        yield _toctree([_entry(name, target, folder) for name, target in dict.fromkeys(below)])


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    folder, _, name = page.rpartition("/")
    if page == app.config.root_doc:
        source[0] += "".join(_of_root(source[0]))
    elif name == "README" and folder:
        source[0] += "".join(_of_folder(source[0], folder))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
