"""What is in the layer of dependencies: a software bill of materials, and the notices that licences ask for.

Both are made from what lies in the layer, not from what was asked for: each ``*.dist-info`` is a component. Its hash in
the lock is that of the wheel whose tags it carries. What a wheel says of its own parts (PEP 770, ``sboms/``) is taken
over, and each shared library that a wheel bundles is listed with its digest.

The bill is CycloneDX 1.6 as JSON (CycloneDX specification, "bom-1.6.schema.json"), and says nothing about the moment or
the machine of the build.
"""

import json
import re
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name, parse_wheel_filename

from tools.artifacts.archive import digest
from tools.artifacts.target import Target
from tools.template import ROOT

LOCK = ROOT / "uv.lock"
BILL, NOTICES = "sbom.cdx.json", "THIRD-PARTY-NOTICES.txt"
_RULE = "=" * 80


@dataclass(frozen=True)
class Distribution:
    """One installed package. ``name`` is canonical; ``folder`` is its dist-info."""

    name: str
    version: str
    folder: Path
    metadata: Message

    @property
    def reference(self) -> str:
        """Its package URL, by which the bill names it."""
        return f"pkg:pypi/{self.name}@{self.version}"

    @property
    def license(self) -> str:
        """Its SPDX expression; older packages say it in another field."""
        return str(self.metadata.get("License-Expression") or self.metadata.get("License") or "")

    @property
    def texts(self) -> list[Path]:
        """The licences and notices that it brings along."""
        named = [path for path in self.folder.glob("*") if re.match(r"(LICEN[CS]E|COPYING|NOTICE)", path.name)]
        return sorted(named + [path for path in self.folder.glob("licenses/**/*") if path.is_file()])


def distributions(folder: Path) -> list[Distribution]:
    """The packages in a layer's python folder, by name."""
    installed = []
    for info in folder.glob("*.dist-info"):
        metadata = HeaderParser().parsestr((info / "METADATA").read_text("utf-8"))
        installed.append(Distribution(canonicalize_name(metadata["Name"]), metadata["Version"], info, metadata))
    return sorted(installed, key=lambda package: package.name)


def bill(folder: Path, target: Target, version: str, *, lock: Path = LOCK) -> dict[str, Any]:
    """The bill of materials of a layer's python folder. ``version`` is Joinery's."""
    packages = distributions(folder)
    wheels = _wheels(lock)
    names = {package.name: package.reference for package in packages}
    product = f"pkg:generic/joinery@{version}"
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": product, "name": "joinery", "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
            "properties": [
                {"name": "joinery:runtime", "value": target.runtime},
                {"name": "joinery:architecture", "value": target.architecture},
            ],
        },
        "components": [_component(package, wheels) for package in packages],
        "dependencies": [
            {"ref": product, "dependsOn": sorted(names.values())},
            *({"ref": package.reference, "dependsOn": _needs(package, names, target)} for package in packages),
        ],
    }  # fmt: skip
    # The same layer has the same number.
    content = json.dumps(document, sort_keys=True)
    return {**document, "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}"}


def notices(folder: Path) -> str:
    """The licences of everything in a layer's python folder. Raises ``ValueError`` for a package without any."""
    parts = ["Joinery's layer of dependencies contains the software below, each part under its own licence.\n"]
    for package in distributions(folder):
        if not package.texts or not package.license:
            raise ValueError(f"{package.name} {package.version} brings no licence along: look why before it is shipped")
        parts.append(f"{_RULE}\n{package.name} {package.version} ({package.license})\n{_RULE}\n")
        parts += [f"--- {path.relative_to(package.folder)} ---\n{_text(path)}\n" for path in package.texts]
        parts += [f"contains {name} {version} ({terms})\n" for name, version, terms in _contained(package)]
    return "\n".join(parts)


def _component(package: Distribution, wheels: dict[str, list[tuple[str, str]]]) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": package.reference,
        "name": package.name,
        "version": package.version,
        "purl": package.reference,
        "licenses": [{"expression": package.license}],
        "hashes": [{"alg": "SHA-256", "content": _hash_of(package, wheels)}],
        "components": [*_bundled(package), *_parts(package)],
    }


def _hash_of(package: Distribution, wheels: dict[str, list[tuple[str, str]]]) -> str:
    """The lock's hash of the wheel that has the tags which the installed package carries."""
    wheel = HeaderParser().parsestr((package.folder / "WHEEL").read_text("utf-8"))
    tags = frozenset(tag for line in wheel.get_all("Tag", []) for tag in parse_tag(line))
    # The name of a wheel may be changed to fit more platforms than its file says, so the nearest one is taken.
    (nearest, content) = max(
        wheels[package.reference], key=lambda named: (len(parse_wheel_filename(named[0])[3] & tags), named[0])
    )
    if not parse_wheel_filename(nearest)[3] & tags:
        raise ValueError(f"{package.name} {package.version}: the lock has no wheel for {', '.join(map(str, tags))}")
    return content


def _wheels(lock: Path) -> dict[str, list[tuple[str, str]]]:
    """By package URL, the file names and SHA-256 of the wheels in a lock."""
    locked: dict[str, list[tuple[str, str]]] = {}
    for package in tomllib.loads(lock.read_text())["package"]:
        files = [
            (wheel["url"].rpartition("/")[2], wheel["hash"].removeprefix("sha256:"))
            for wheel in package.get("wheels", ())
        ]
        locked[f"pkg:pypi/{canonicalize_name(package['name'])}@{package.get('version', '')}"] = files
    return locked


def _bundled(package: Distribution) -> Iterator[dict[str, Any]]:
    """The shared libraries that the wheel brings in a folder beside the package (auditwheel's ``.libs``)."""
    for path in sorted(package.folder.parent.glob(f"{package.name.replace('-', '_')}.libs/*")):
        yield {"type": "file", "bom-ref": f"{package.reference}#{path.name}", "name": path.name,
               "hashes": [{"alg": "SHA-256", "content": digest(path)}]}  # fmt: skip


def _parts(package: Distribution) -> Iterator[dict[str, Any]]:
    """What the wheel's own bill lists, under names of this one."""
    for part in _listed(package):
        terms = {"licenses": part["licenses"]} if part.get("licenses") else {}
        url = {"purl": part["purl"]} if part.get("purl") else {}
        yield {"type": "library", "bom-ref": f"{package.reference}#{part['name']}@{part.get('version', '')}",
               "name": part["name"], "version": part.get("version", ""), **url, **terms}  # fmt: skip


def _contained(package: Distribution) -> Iterator[tuple[str, str, str]]:
    for part in _listed(package):
        terms = " AND ".join(_terms(part.get("licenses", ())))
        yield part["name"], part.get("version", ""), terms or "no licence stated"


def _terms(licenses: Iterable[dict[str, Any]]) -> Iterator[str]:
    for entry in licenses:
        yield entry.get("expression") or entry["license"].get("id") or entry["license"].get("name", "")


def _listed(package: Distribution) -> list[dict[str, Any]]:
    """The components of the wheel's own bills, each once, by name."""
    components = {}
    for path in sorted(package.folder.glob("sboms/*.json")):
        for part in json.loads(path.read_text("utf-8")).get("components", ()):
            components[part["name"], part.get("version", "")] = part
    return [components[key] for key in sorted(components)]


def _needs(package: Distribution, names: dict[str, str], target: Target) -> list[str]:
    """The packages of the layer that this one requires on the target."""
    environment = {
        "extra": "", "python_version": target.version, "python_full_version": f"{target.version}.0",
        "platform_machine": target.machine, "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix",
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
    }  # fmt: skip
    required = (Requirement(line) for line in package.metadata.get_all("Requires-Dist", []))
    needed = {canonicalize_name(r.name) for r in required if r.marker is None or r.marker.evaluate(environment)}
    return sorted(names[name] for name in needed if name in names)


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace").strip() + "\n"
