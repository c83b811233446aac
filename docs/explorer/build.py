"""Put the explorer together: one file that needs neither a server nor a network.

    python -m docs.explorer.build explorer.html

The solutions come from ``docs.explorer.solve``; this takes a fraction of a second.
"""

import argparse
import base64
import html
from collections.abc import Iterable
from pathlib import Path

from docs.explorer.solve import FOLDER, unpack

PAGE = Path(__file__).resolve().parent / "page"
#: The order of the buttons.
ORDER = ("group", "labels", "unequal", "overlap", "moons", "tumours")


def read_solutions() -> list[bytes]:
    """The files of all datasets, in the order of the page."""
    return [(FOLDER / f"{key}.bin").read_bytes() for key in ORDER]


def assemble(files: Iterable[bytes]) -> str:
    """The page for these files."""
    blocks = []
    for packed in files:
        header = unpack(packed).header
        title = html.escape(header["title"], quote=True)
        blocks.append(
            f'<script type="text/plain" id="data-{header["key"]}" data-dataset="{header["key"]}"'
            f' data-title="{title}">{base64.b64encode(packed).decode()}</script>'
        )
    page = (PAGE / "page.html").read_text(encoding="utf-8")
    # The data last: they are no place to look for names in braces.
    return (
        page.replace("{css}", (PAGE / "page.css").read_text(encoding="utf-8").strip())
        .replace("{js}", (PAGE / "page.js").read_text(encoding="utf-8").strip())
        .replace("{data}", "\n".join(blocks))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path, help="HTML file to write")
    output = parser.parse_args().output
    output.write_text(assemble(read_solutions()), encoding="utf-8")
    print(f"{output}: {output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
