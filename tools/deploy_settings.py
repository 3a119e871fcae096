"""What ``make deploy`` writes into the stack's parameter Settings: what the stack has, and what a person gives.

A setting that nobody names keeps its value. What the stack has may be of another release, so it is read as it is, and
only what is kept of it is checked. Nothing here asks AWS.
"""

from collections.abc import Iterator, Mapping

from joinery.objects.errors import ConfigurationError
from joinery.objects.settings import SETTINGS, SWITCHES, chosen, in_force
from joinery.objects.stack_settings import written

#: What is overwritten once must not be overwritten from then on; what is reserved depends on the quota (``deploy``).
_NOT_KEPT = ("ForceConflicts", "WebhookConcurrency")
#: Without them data is encrypted anew, roles lose their bound, functions gain or lose the cluster, members lose
#: their home.
_NEVER_LOST = ("AccessEntries", "KmsKeyArn", "Members", "PermissionsBoundaryArn")


class RefusedError(Exception):
    """It would fail. The message says why, and what to do."""


def text_of(parameters: Mapping[str, str]) -> str:
    """What a stack's parameters say, as the parameter Settings says it: older templates have a parameter for each."""
    if "Settings" in parameters:
        return parameters["Settings"]
    settings = {name: parameters.get(name) or setting.default for name, setting in SETTINGS.items()}
    settings["SwitchedOff"] = ",".join(door for door in SWITCHES if parameters.get(f"{door.title()}Enabled") == "false")
    return written({name: value for name, value in settings.items() if value != SETTINGS[name].default})


def named(given: Mapping[str, str]) -> dict[str, str]:
    """The settings among what is given, by themselves and in the parameter Settings. Raises ``RefusedError``."""
    try:
        return {**chosen(given.get("Settings", "")), **{key: given[key] for key in given if key in SETTINGS}}
    except ConfigurationError as error:
        raise RefusedError(f"PARAMETERS: Settings: {error}") from error


def settings_of(stored: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """What the parameter Settings is to say, by name. ``stored``: what the stack has. Raises ``RefusedError``.

    Where the parameter itself is given, nothing else of the stack's stays. A setting that is given without a value has
    its default again.
    """
    said = named(given)
    kept = {} if "Settings" in given else {name: stored[name] for name in stored if name in SETTINGS and stored[name]}
    settings = {name: value for name, value in {**kept, **said}.items() if value}
    settings = {name: value for name, value in settings.items() if name in said or name not in _NOT_KEPT}
    try:
        in_force(written(settings))
    except ConfigurationError as error:
        name = str(error).replace("=", " ").split()[0]
        if name not in settings or name in said:
            raise RefusedError(f"PARAMETERS: {error}") from error
        raise RefusedError(f"The stack's Settings: {error}. Say {name}=..., or {name}= for its default") from error
    lost = [name for name in _NEVER_LOST if name not in said and _goes(name, stored, settings)]
    if lost:
        each = " ".join(f"{name}=" for name in lost)
        raise RefusedError(
            f"PARAMETERS: Settings does not name {', '.join(lost)}, which the stack has: say {each}, too"
        )
    return settings


def changes(stored: Mapping[str, str], given: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[str]:
    """What a person may not know that they change."""
    said = named(given)
    for name, value in stored.items():
        if name not in SETTINGS:
            yield f"The stack's Settings: there is no setting {name}, so it is left out."
        elif name not in (*said, *_NOT_KEPT) and _goes(name, stored, settings):
            yield f"{name} was {value}, and has its default again, because Settings does not name it."
    for door in sorted(_off(stored) - _off(settings)):
        yield f"{door} is switched on again."


def _goes(name: str, stored: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    return name not in settings and stored.get(name, "") not in ("", SETTINGS[name].default)


def _off(settings: Mapping[str, str]) -> set[str]:
    return {door.strip() for door in settings.get("SwitchedOff", "").split(",")} - {""}
