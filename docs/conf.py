"""Settings of the documentation: ``python -m sphinx -W -b html docs docs/_build/html``."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import owasvm

project = "owasvm"
author = "owasvm developers"
project_copyright = "owasvm developers"
version = release = owasvm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "figures", "results", "generated", "auto_examples/*.ipynb"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False

if find_spec("sphinx_gallery") is not None:
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": "../examples",
        "gallery_dirs": "auto_examples",
        "download_all_examples": False,
        "show_memory": False,
        "show_signature": False,
        "write_computation_times": False,
        "remove_config_comments": True,
    }
else:
    # The page auto_examples/index does not exist then.
    suppress_warnings = ["toc.not_readable"]

html_theme = "pydata_sphinx_theme"
html_title = f"owasvm {release}"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# The pages have no subpages, so the left sidebar would be empty.
html_sidebars = {"**": []}
