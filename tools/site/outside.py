"""Links to files and folders that are no pages: they lead to a page that shows them.

On GitHub `[train.py](../examples/tiny-gpt/train.py)` shows the script, and a link to a folder shows
its README.md or what is in it. Here a script becomes a page of its own below files/, a folder its
README.md where it has one, else a list. A link to what is not there is left to Sphinx, which
complains.
"""

from __future__ import annotations

import html
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.osutil import relative_uri

SHOWN_BYTES = 200_000
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "sh", ".toml": "toml"}
INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tradewind</title>
<meta http-equiv="refresh" content="0; url={page}"></head>
<body><p><a href="{page}">Tradewind</a></p></body></html>
"""


class Outside(SphinxTransform):
    """Runs before downloads are collected, and before links are resolved."""

    default_priority = 1

    def apply(self, **kwargs: Any) -> None:
        for kind in (addnodes.download_reference, addnodes.pending_xref):
            for node in list(self.document.findall(kind)):
                target = node.get("reftarget", "")
                if target and not node.get("refdomain") and node.get("reftype") == "myst":
                    self._lead(node, target.partition("#")[0])

    def _lead(self, node: nodes.Element, target: str) -> None:
        here = posixpath.dirname(self.env.docname)
        path = posixpath.normpath(posixpath.join(here, target))
        if path.startswith("..") or not target:
            return
        file = Path(self.app.srcdir, path)
        if (file / "README.md").is_file():
            page = f"{path}/README"
        elif file.exists():
            page = f"files/{path}"
            _wanted(self.app).add(path)
        else:
            return
        uri = relative_uri(f"{self.env.docname}.html", f"{page}.html")
        link = nodes.reference("", "", *node.children, internal=True, refuri=uri)
        node.replace_self(link)


def _wanted(app: Sphinx) -> set[str]:
    found: set[str] = app.env.__dict__.setdefault("tradewind_outside", set())
    return found


def _list(app: Sphinx, path: str) -> str:
    """A folder's files, each a link; and each of them is wanted too."""
    files = [each for each in sorted(Path(app.srcdir, path).iterdir()) if each.is_file()]
    _wanted(app).update(f"{path}/{each.name}" for each in files)
    base = posixpath.basename(path)
    lines = (f'<li><a href="{base}/{each.name}.html">{each.name}</a></li>' for each in files)
    return f"<ul>{''.join(lines)}</ul>"


def _text(app: Sphinx, path: str) -> str:
    file = Path(app.srcdir, path)
    language = LANGUAGES.get(file.suffix, "text")
    raw = file.read_bytes()[:SHOWN_BYTES]
    if b"\0" in raw:
        return "<p>This file is not text.</p>"
    shown: str = app.builder.highlighter.highlight_block(raw.decode(errors="replace"), language)
    return f'<div class="highlight-{language} notranslate">{shown}</div>'


def _pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    done: set[str] = set()
    while left := _wanted(app) - done:
        path = min(left)
        done.add(path)
        folder = Path(app.srcdir, path).is_dir()
        body = _list(app, path) if folder else _text(app, path)
        title = html.escape(path)
        yield (f"files/{path}", {"title": title, "body": f"<h1>{title}</h1>{body}"}, "page.html")


def _front(app: Sphinx, failed: Exception | None) -> None:
    """index.html, where a browser and a server look first."""
    if not failed:
        page = f"{app.config.root_doc}.html"
        Path(app.outdir, "index.html").write_text(INDEX.format(page=page))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Outside)
    app.connect("html-collect-pages", _pages)
    app.connect("build-finished", _front)
    return {"parallel_read_safe": False}
