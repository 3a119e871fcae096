"""A member: a further cluster that the functions of a stack serve, with roles and settings of its own.

Its stack registers it in the table of the stack whose functions these are (``joinery.gateways.memory.register``), and
takes it out first of all when it is deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """As it is registered. ``roles``: the ARN of the role of each function, by the function's name. ``settings``,
    ``mode``: as its stack's parameters say them. ``secret``: the ARN of its webhook's secret. ``stack``: the ARN of its
    stack. ``version``: of the release that has registered it.
    """

    cluster: str
    roles: Mapping[str, str]
    settings: str = ""
    mode: str = ""
    secret: str = ""
    stack: str = ""
    version: str = ""
