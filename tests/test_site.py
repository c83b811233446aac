"""The built pages: complete without a network, no dead link, no error in a browser.

``make docs`` builds them and runs these tests; ``OWASVM_SITE`` names the folder of the pages.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.chromium import Chromium, find_chromium

SITE = Path(os.environ.get("OWASVM_SITE", "not built"))
pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="the pages are not built: make docs")

# What a browser fetches by itself to show a page; links are for the reader to follow.
FETCHED = {
    "audio": ["src"],
    "embed": ["src"],
    "iframe": ["src"],
    "img": ["src", "srcset"],
    "link": ["href"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "video": ["src", "poster"],
}
# Addresses that a browser does not fetch.
NOT_FETCHED = {"author", "canonical", "help", "license", "next", "prev", "search", "index"}
ELSEWHERE = re.compile(r"(?:https?:)?//")
FETCHED_BY_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")

# What an example printed; warnings are printed too.
PRINTED = re.compile(r'<div class="sphx-glr-script-out.*?</pre>', re.DOTALL)
TAG = re.compile(r"<[^>]*>")


class Page(HTMLParser):
    """What a page fetches, links to and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if NOT_FETCHED.isdisjoint(values.get("rel", "").split()):
            for name in FETCHED.get(tag, []):
                self.fetched += [
                    part.split()[0] for part in values.get(name, "").split(", ") if part
                ]


@cache
def read_page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def pages() -> list[Path]:
    return [path for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts]


def test_nothing_comes_from_elsewhere() -> None:
    assert pages()
    for path in pages():
        assert not [url for url in read_page(path).fetched if ELSEWHERE.match(url)], path
    for path in SITE.rglob("*.css"):
        assert not FETCHED_BY_STYLES.findall(path.read_text(encoding="utf-8")), path


def test_links_lead_somewhere() -> None:
    dead = []
    for path in pages():
        page = read_page(path)
        for url in page.links + page.fetched:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                dead.append((str(path), url))
            elif parts.fragment and target.suffix == ".html":
                if unquote(parts.fragment) not in read_page(target).anchors:
                    dead.append((str(path), url))
    assert not dead


def test_examples_draw_and_do_not_warn() -> None:
    examples = sorted((SITE / "auto_examples").rglob("plot_*.html"))
    assert len(examples) >= 12
    for path in examples:
        text = path.read_text(encoding="utf-8")
        assert "sphx_glr_plot_" in text, path
        assert "sphx-glr-script-out-error" not in text, path
        for printed in PRINTED.findall(text):
            assert "Warning: " not in unescape(TAG.sub("", printed)), path


def test_formulas_need_no_script() -> None:
    assert "<math" in (SITE / "mathematics.html").read_text(encoding="utf-8")
    for path in pages():
        assert 'class="math' not in path.read_text(encoding="utf-8"), path


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("Chromium is not installed")
    with Chromium(executable) as browser:
        yield browser


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_show_no_error_and_fit_the_window(browser: Chromium, width: int) -> None:
    for path in pages():
        if "_modules" in path.parts:
            continue
        browser.open(path, width=width)
        assert not browser.problems, path
        assert all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests), path
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, path


def test_header_is_one_line(browser: Chromium) -> None:
    browser.open(SITE / "index.html", width=1280)
    tops = browser.evaluate(
        """[...document.querySelectorAll(".bd-header .nav-link, .bd-header .search-button-field")]
             .map(e => e.getBoundingClientRect()).filter(box => box.height > 0)
             .map(box => (box.top + box.bottom) / 2)"""
    )
    assert max(tops) - min(tops) < 10


def test_search_finds_a_word(browser: Chromium) -> None:
    browser.open(SITE / "search.html")
    address = (SITE / "search.html").resolve().as_uri()
    browser.call("Page.navigate", url=f"{address}?q=superquantile")
    titles = browser.evaluate(
        """new Promise((done, fail) => {
             const deadline = Date.now() + 20000;
             const look = () => {
               const results = document.querySelector("#search-results");
               if (results?.textContent.includes("Search finished"))
                 done([...results.querySelectorAll("li a")].map(a => a.textContent));
               else if (Date.now() > deadline) fail("the search did not end");
               else setTimeout(look, 100);
             };
             look();
           })"""
    )
    assert "Weights, ranks and losses" in titles
    assert not browser.problems
