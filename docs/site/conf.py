"""Sphinx's configuration of the reference. The scripts beside it write its sources: see build_site.py."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

_CMAKE = (HERE.parents[1] / "CMakeLists.txt").read_text(encoding="utf-8")
_VERSION = re.search(r"^  VERSION ([0-9.]+)$", _CMAKE, re.MULTILINE)

project = "Gradsmith"
copyright = "the authors of Gradsmith"
release = version = _VERSION[1] if _VERSION else ""
extensions = ["myst_parser", "math_in_mathml"]
myst_heading_anchors = 4
myst_fence_as_directive = ["math"]
myst_enable_extensions = ["colon_fence"]
highlight_language = "none"
smartquotes = False
math_number_all = False
nitpicky = True

html_theme = "furo"
html_title = f"Gradsmith {release}"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_js_files = [("filter.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_show_search_summary = False  # summaries are fetched, which pages of a folder may not
html_theme_options: dict[str, object] = {"top_of_page_buttons": []}
templates_path: list[str] = []
