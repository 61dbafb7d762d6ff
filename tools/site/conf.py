"""How Sphinx makes a site of the repository's own pages: `make docs`.

The source folder is the repository itself, so that every link that works on GitHub works here: no
page is copied, none is written for the site alone. The sidebar's order is that of docs/README.md
(navigation.py); links to files that are no pages lead to pages that show them (outside.py). What a
page needs lies beside it, so that the site opens from a disk, without a server or a network.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

_PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

project = "Tradewind"
author = _PACKAGE["authors"][0]["name"]
project_copyright = f"{author}, {_PACKAGE['license']}"
release = version = _PACKAGE["version"]

extensions = ["myst_parser", "navigation", "outside"]
source_suffix = {".md": "markdown"}
root_doc = "docs/README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/**.md",
    "examples/**.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "tools", "demo", "examples/store"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# `…` in a script stands for the reader's own lines; it is no Python.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "Tradewind"
html_static_path = ["static"]
html_css_files = ["tradewind.css"]
html_js_files = ["offline.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
