"""How Sphinx builds the pages: `make docs`. What a page says is Markdown as GitHub reads it, and nothing of Sphinx."""

from pathlib import Path

project = "Joinery"
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/home"
html_theme = "furo"
html_title = "Joinery"
# Pages for those who work on Joinery come after all others.
html_search_scorer = str(Path(__file__).with_name("search.js"))
html_static_path = ["site"]
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
# Nothing is put into it.
html_use_index = False
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
# Headings are linked to under the names that GitHub gives them.
myst_heading_anchors = 4
# A line that begins with a percent sign goes on with its sentence, as on GitHub; to MyST it would be a comment.
myst_disable_syntax = ["myst_line_comment"]
# A list of the environment, for a shell, is highlighted as one or not at all: no page should fail for its colours.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
