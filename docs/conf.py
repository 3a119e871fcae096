"""How Sphinx builds the pages: `make docs`. What a page says is Markdown as GitHub reads it, and nothing of Sphinx."""

project = "Joinery"
extensions = ["myst_parser"]
root_doc = "README"
html_theme = "furo"
html_title = "Joinery"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
# Headings are linked to under the names that GitHub gives them.
myst_heading_anchors = 4
# A list of the environment, for a shell, is highlighted as one or not at all: no page should fail for its colours.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
