"""Zip archives of which every byte follows from the files: no clock, no order of a file system, no user's permissions.

So the same commit gives the same archive, CloudFormation replaces a layer only if it has changed, and what runs can be
compared with what was reviewed. Deflate is zlib's, so the machines must have the same zlib to agree.
"""

import hashlib
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

#: The earliest moment that a zip can tell. Bytecode is marked as not to be compared with it.
_MOMENT = (1980, 1, 1, 0, 0, 0)
#: A plain file that everybody may read: Lambda's user is not the one who built it.
_PERMISSIONS = 0o100644
_EXECUTABLE = 0o100755
_UNIX = 3


def archive(folder: Path, into: Path, *, executables: Collection[str] = ()) -> str:
    """Write the files below a folder into a zip. Returns the SHA-256 of the zip, in hex.

    ``executables``: paths in the zip of what may be executed.
    """
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as zipped:
        for path in files_of(folder):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _MOMENT)
            entry.create_system = _UNIX
            entry.external_attr = (_EXECUTABLE if entry.filename in executables else _PERMISSIONS) << 16
            zipped.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=6)
    return digest(into)


def files_of(folder: Path) -> Iterable[Path]:
    """The files below a folder in an order that no file system decides."""
    return sorted(
        (path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.relative_to(folder).parts
    )


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
