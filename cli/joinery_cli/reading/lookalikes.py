"""What people give instead of objects: what ``kubectl describe`` prints, a table, a page, Terraform, Helm's report.

None of it can be read, and a parser's words do not say what to give instead.
"""

import re

_TAB = re.compile(rb"^ *\t[ \t]*\S", re.MULTILINE)
#: Each begins a line, where neither an object nor a text inside of one could have it.
_LOOKALIKES = (
    (
        re.compile(rb"\A\s*Name:[ \t]{2,}\S[^\n]*\n(Namespace|Roles|Labels|Role|API Version):[ \t]"),
        "looks like what kubectl describe prints: give what kubectl get -o yaml prints",
    ),
    (
        re.compile(rb"\A\s*(NAMESPACE +)?NAME +[A-Z][A-Z-]+[ \r\n]"),
        "looks like a table of kubectl get: give what kubectl get -o yaml prints",
    ),
    (re.compile(rb"\A\s*[$#] (kubectl|helm|kustomize|cat) [^\n]*", re.MULTILINE), "looks like a command: leave it out"),
    (
        re.compile(rb'^(resource|module|data|locals|variable|provider|terraform)( "[^"\n]*")* *\{', re.MULTILINE),
        "looks like Terraform: give the manifests that it applies",
    ),
    (re.compile(rb"^```", re.MULTILINE), "looks like a page: give what is between its lines of ``` alone"),
    (
        re.compile(rb"\ANAME: \S+\s+LAST DEPLOYED: |^NOTES:\s*$", re.MULTILINE),
        "looks like Helm's report: give what helm template or helm get manifest prints",
    ),
)  # fmt: skip


def looks_like(data: bytes) -> str:
    """``line 3: looks like ...`` with what to give instead; empty for what is like nothing that is known."""
    for pattern, what in _LOOKALIKES:
        if match := pattern.search(data):
            return f"line {_line(data, match)}: {what}"
    return ""


def tab_in(data: bytes) -> str:
    """The first line that begins with a tab, which YAML does not take for indentation; or empty."""
    match = _TAB.search(data)
    return f"line {_line(data, match)}: indented by a tab: YAML takes spaces only" if match else ""


def _line(data: bytes, match: re.Match[bytes]) -> int:
    return data.count(b"\n", 0, match.start()) + 1
