"""Which files ``-f`` means: one file, or those of a folder that ``kubectl apply -f`` would read.

A folder that only makes objects (a Helm chart, an overlay of kustomize) is not what a cluster gets, and is refused with
what to run first, as ``kubectl`` refuses it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from joinery.objects.errors import ConfigurationError

#: What kubectl takes from a folder (k8s.io/cli-runtime ``resource.FileExtensions``).
_ENDINGS = (".yaml", ".yml", ".json")
_LISTED = ".yaml, .yml or .json"
#: Files that are no objects and stand for what becomes of those beside them.
_MAKERS = {
    "Chart.yaml": "is a Helm chart: run helm template first",
    **dict.fromkeys(
        ("kustomization.yaml", "kustomization.yml", "Kustomization"), "is kustomize's: run kubectl kustomize first"
    ),
}  # fmt: skip
_ADDRESS = re.compile(r"[a-z][a-z0-9+]*://")


def files_of(path: str, *, recursive: bool = False) -> Iterator[str]:
    """The file itself (``-`` is standard input), or the folder's in the order of their names; ``recursive``: also of
    those inside.

    Raises ``ConfigurationError`` for a folder without any, for an address, and for what only makes objects.
    """
    if _ADDRESS.match(path):
        raise ConfigurationError(f"{path}: is an address, no file: curl -L {path} | joinery plan -f -")
    folder = Path(path)
    try:
        if path == "-" or not folder.is_dir():
            if folder.name in _MAKERS and folder.is_file():
                raise ConfigurationError(f"{path}: {_MAKERS[folder.name]}")
            yield path
            return
        inside = [*_below(folder, recursive=recursive)]
    except OSError as error:
        raise ConfigurationError(f"{error.filename or path}: {error.strerror or error}") from error
    if not inside:
        hint = "" if recursive or not any(_below(folder, recursive=True)) else "; -R looks into its folders too"
        raise ConfigurationError(f"{path}: no {_LISTED} file in it{hint}")
    yield from inside


def _below(folder: Path, *, recursive: bool) -> Iterator[str]:
    members = sorted(folder.iterdir())
    for name, problem in _MAKERS.items():
        if folder / name in members:
            raise ConfigurationError(f"{folder}: {problem}")
    yield from (str(one) for one in members if one.name.endswith(_ENDINGS) and not one.is_dir())
    # A link to a folder may lead back to where it is.
    for inner in members if recursive else ():
        if inner.is_dir() and not inner.is_symlink():
            yield from _below(inner, recursive=True)
