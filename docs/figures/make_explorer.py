"""Take the picture of the explorer for the README.

    python docs/figures/make_explorer.py

needs a Chromium. It writes ``explorer.png`` beside this script, 1280 pixels wide.
"""

import base64
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image, PngImagePlugin
from stamp import KEY, source

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from docs.explorer.build import assemble, read_solutions  # noqa: E402
from tests.chromium import Chromium, find_chromium  # noqa: E402

WIDTH = 1280
STILL = """new Promise(done => {
  const look = () => window.explorer?.isStill() ? done(true) : setTimeout(look, 20);
  look();
})"""


def main() -> None:
    executable = find_chromium()
    if executable is None:
        raise SystemExit("No Chromium on the path: install one to take the picture.")
    with tempfile.TemporaryDirectory() as folder, Chromium(executable) as browser:
        page = Path(folder) / "explorer.html"
        page.write_text(assemble(read_solutions()), encoding="utf-8")
        browser.open(page, width=WIDTH)
        browser.evaluate(STILL)
        height = browser.evaluate("document.querySelector('.foot').offsetTop")
        area = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=area)
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    # Enough colours for the gradients; a third of the size.
    image = image.quantize(256, dither=Image.Dither.NONE)
    output = Path(__file__).with_name("explorer.png")
    stamp = PngImagePlugin.PngInfo()
    stamp.add_text(KEY, source(__file__))
    image.save(output, optimize=True, pnginfo=stamp)
    print(f"{output.name}: {image.width} x {image.height}, {output.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
