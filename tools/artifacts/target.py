"""What a build is for: a Python and a processor, said once in the template (``Mappings``) or to ``make``."""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: What Lambda runs, and the minor version of the glibc beneath it: Amazon Linux 2 under python3.11, Amazon Linux 2023
#: under the others (AWS Lambda developer guide, "Lambda runtimes").
GLIBC = {"python3.11": 26, "python3.12": 34, "python3.13": 34}
#: The platforms that uv knows by a glibc, the lowest first.
_PLATFORMS = (28, 34)
#: Lambda's name of a processor to everybody else's.
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
HOST = "host"
_MANYLINUX = re.compile(r"manylinux_2_(?P<minor>\d+)_(?P<machine>\w+)")
_MAPPING = re.compile(r"^(    Joinery: \{ Version: [^ ,]*, Runtime: )([^ ,]*)(, Architecture: )([^ ,]*)(, .*\})$", re.M)


class TargetError(ValueError):
    """What was asked for cannot be built, or is not what was built. The message says it in one line."""


@dataclass(frozen=True)
class Target:
    """``runtime`` and ``architecture`` in Lambda's words: ``python3.13``, ``arm64``. Raises ``TargetError``."""

    runtime: str
    architecture: str

    def __post_init__(self) -> None:
        if self.runtime not in GLIBC:
            raise TargetError(f"RUNTIME={self.runtime}: it is one of {', '.join(GLIBC)}")
        if self.architecture not in MACHINES:
            raise TargetError(f"ARCHITECTURE={self.architecture}: it is one of {', '.join(MACHINES)}")

    def __str__(self) -> str:
        return f"{self.runtime} on {self.architecture}"

    @property
    def version(self) -> str:
        """The Python alone: ``3.13``."""
        return self.runtime.removeprefix("python")

    @property
    def machine(self) -> str:
        """The processor as wheels and the kernel name it."""
        return MACHINES[self.architecture]

    @property
    def platform(self) -> str:
        """The platform as uv names it, of this glibc or the next that uv knows."""
        return f"{self.machine}-manylinux_2_{next(minor for minor in _PLATFORMS if minor >= GLIBC[self.runtime])}"

    def runs(self, tags: Iterable[str]) -> bool:
        """Whether a wheel of these tags runs here; uv may have taken one for a newer glibc."""
        return any(self._runs(tag.rpartition("-")[2]) for tag in tags)

    def _runs(self, platform: str) -> bool:
        newer = _MANYLINUX.fullmatch(platform)
        if newer:
            return newer["machine"] == self.machine and int(newer["minor"]) <= GLIBC[self.runtime]
        return platform in ("any", f"manylinux2014_{self.machine}")


def host_architecture() -> str:
    """This machine's architecture, in Lambda's words."""
    return "arm64" if os.uname().machine in ("arm64", "aarch64") else "x86_64"


def asked(runtime: str, architecture: str, template: dict[str, Any]) -> Target:
    """What was asked for: a name, ``host`` for this machine's own, or nothing for what the template says."""
    default = of_template(template)
    own = (
        Target(f"python3.{sys.version_info.minor}", host_architecture()) if HOST in (runtime, architecture) else default
    )
    return Target(
        own.runtime if runtime == HOST else runtime or default.runtime,
        own.architecture if architecture == HOST else architecture or default.architecture,
    )


def of_template(template: dict[str, Any]) -> Target:
    """What a template's functions run on."""
    release = template["Mappings"]["Release"]["Joinery"]
    return Target(release["Runtime"], release["Architecture"])


def written_into(template: str, target: Target) -> str:
    """The text of a template whose functions run on the target. Raises ``ValueError`` if the mapping is not there."""
    written, count = _MAPPING.subn(rf"\g<1>{target.runtime}\g<3>{target.architecture}\g<5>", template)
    if count != 1:
        raise ValueError(f"the template says {count} times what it runs on, and must once")
    return written
