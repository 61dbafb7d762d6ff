"""Draws docs/pictures/demo.png: what `tradewind demo` prints from its third part on, in a terminal.

    COLUMNS=100 script -qec "tradewind demo" /tmp/demo.txt
    python tools/picture_of_demo.py /tmp/demo.txt

Needs the system's chromium (tools/install-system-packages.sh) and Playwright.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "demo.png"
WIDTH = 100
PAGE = """<meta charset="utf-8"><style>
body {{ margin: 0; background: #16181d; display: inline-block; }}
pre {{ margin: 0; padding: 22px 26px; color: #d8dce4;
  font: 14px/1.42 "DejaVu Sans Mono", monospace; }}
</style><pre>{code}</pre>"""


def told(recorded: str) -> str:
    """Without the lines that were written over again, and without what the plan says: the README
    shows it by itself."""
    kept = [line.rsplit("\x1b[2K", 1)[-1] for line in recorded.replace("\r\n", "\n").split("\n")]
    text = "\n".join(kept)
    return text[text.index("\x1b[1m3  ") : text.index("\nOpen ")]


def main(recording: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        console = Console(record=True, width=WIDTH, file=io.StringIO())
        console.print(Text.from_ansi(told(Path(recording).read_bytes().decode("utf-8", "replace"))))
        page = Path(place, "page.html")
        code = console.export_html(theme=MONOKAI, inline_styles=True, code_format="{code}")
        page.write_text(PAGE.format(code=code))
        with sync_playwright() as player:
            browser = player.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox"]
            )
            shown = browser.new_page(
                viewport={"width": 920, "height": 600}, device_scale_factor=1.5
            )
            shown.goto(page.as_uri())
            shown.locator("body").screenshot(path=PICTURE)
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
