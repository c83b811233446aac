"""Settings of the documentation: ``python -m sphinx -W -b html docs docs/_build/html``."""

import sys
from pathlib import Path

from sphinx.ext.autosummary.generate import find_autosummary_in_files

sys.path.insert(0, str(Path(__file__).resolve().parent / "_ext"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import owasvm

HERE = Path(__file__).resolve().parent

project = "owasvm"
author = "owasvm developers"
project_copyright = "owasvm developers"
version = release = owasvm.__version__

extensions = [
    "docs.explorer.sphinx_page",
    "mathml",
    "myst_parser",
    "numpydoc",
    "run_report",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext", "_static", "_templates", "figures", "results"]
exclude_patterns += ["auto_examples/**/*.ipynb", "auto_examples/*.ipynb"]
templates_path = ["_templates"]
html_math_renderer = "mathml"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
numpydoc_show_class_members = False

# Pages of names and examples that are gone would be orphans.
listed = find_autosummary_in_files([str(HERE / "api.md"), str(HERE / "api-parts.md")])
for page in (HERE / "generated").glob("*.rst"):
    if page.stem not in {entry.name for entry in listed}:
        page.unlink()
for page in (HERE / "auto_examples").rglob("plot_*.rst"):
    example = page.relative_to(HERE / "auto_examples").with_suffix(".py")
    if not (HERE.parent / "examples" / example).exists():
        page.unlink()

SECTIONS = ("tutorial", "basics", "worst_cases", "robust", "choosing", "practice")

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [f"../examples/{folder}" for folder in SECTIONS],
    "within_subsection_order": "gallery_order.ByIdea",
    "backreferences_dir": "generated/examples",
    "doc_module": ("owasvm",),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "owasvm"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without a section of their own.
html_sidebars = {"index": [], "explorer": [], "getting-started": []}
