"""Write the version of ``pyproject.toml`` where the package and the stack say it.

    python -m tools.version            writes it
    python -m tools.version --check    exit status 1 where another one is written

A person changes it in ``pyproject.toml``. Lambda has neither that file nor the package's metadata, so the package says
it as a constant. The template says it in a mapping: a parameter would keep the value of the release before, because an
update of a stack leaves the parameters that nobody names as they are.
"""

import re
import sys
import tomllib
from pathlib import Path

from tools.template import ROOT, TEMPLATE

PROJECT = ROOT / "pyproject.toml"
#: By file, the line that says the version; its second group is the version.
PLACES = {
    ROOT / "shared" / "joinery" / "__init__.py": re.compile(r'^(__version__ = ")([^"]*)(")$', re.MULTILINE),
    TEMPLATE: re.compile(r"^(    Joinery: \{ Version: )([^ ,]*)(, .*\})$", re.MULTILINE),
}


def main() -> None:
    asked = project_version()
    stale = [path for path in PLACES if said_in(path) != asked]
    if "--check" in sys.argv[1:]:
        if stale:
            names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
            sys.exit(f"pyproject.toml says {asked}, and {names} another version: python -m tools.version")
        return
    for path in stale:
        path.write_text(PLACES[path].sub(rf"\g<1>{asked}\g<3>", path.read_text()))


def project_version() -> str:
    """The version of ``pyproject.toml``."""
    version: str = tomllib.loads(PROJECT.read_text())["project"]["version"]
    return version


def said_in(path: Path) -> str:
    """The version that one of the ``PLACES`` says. Raises ``ValueError`` if its line is not there once."""
    lines = PLACES[path].findall(path.read_text())
    if len(lines) != 1:
        raise ValueError(f"{path.name} has {len(lines)} lines that say the version, and needs one")
    return str(lines[0][1])


if __name__ == "__main__":
    main()
