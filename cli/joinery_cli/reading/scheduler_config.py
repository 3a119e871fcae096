"""A scheduler's own configuration, for the topology spread that it gives to pods without any.

KubeSchedulerConfiguration v1, as kube-scheduler is started with; a ConfigMap with one, as a second scheduler has it; or
the document of Karpenter's ``SCHEDULER_CONFIG``. Of everything else in it a plan knows nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from joinery.objects.default_spread import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, DefaultSpread, DefaultSpreads, check
from joinery.objects.errors import ConfigurationError
from joinery.objects.wording import must_be, one_of
from joinery_cli.reading.documents import read, source_name
from joinery_cli.reading.values import checked_map, one_document
from joinery_cli.reading.yamls import split

_KIND, _GROUP = "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/"
_PLUGIN, _KARPENTER = "PodTopologySpread", "podTopologySpread"
_DEFAULT_PROFILE = "default-scheduler"
_ACTIONS, _POLICIES = [DO_NOT_SCHEDULE, SCHEDULE_ANYWAY], ["Honor", "Ignore"]
_FIELDS = ("maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy")


def read_default_spreads(path: str) -> DefaultSpreads:
    """The constraints that the file lists, by profile. The built-in ones (``defaultingType: System``) are none: by them
    a scheduler prefers nodes, and waits for none.

    Raises ``ConfigurationError`` naming file and field.
    """
    source = source_name(path)
    document = checked_map(source, one_document(source, read(path), f"a {_KIND}"))
    document = _of_config_map(source, document)
    spreads = tuple(_of_karpenter(source, document) if _KARPENTER in document else _of_profiles(source, document))
    try:
        check(spreads)
    except ValueError as error:
        raise ConfigurationError(f"{source}: {error}") from None
    return spreads


def _of_config_map(source: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration that a ConfigMap holds; any other document as it is."""
    if document.get("kind") != "ConfigMap":
        return document
    configurations = [
        (key, msgspec.json.decode(one))
        for key, text in checked_map(f"{source}: data", document.get("data", {})).items()
        if isinstance(text, str) and _KIND in text
        for _, one in split(f"{source}: data.{key}", text.encode())
    ]
    if len(configurations) != 1:
        raise ConfigurationError(f"{source}: must hold one {_KIND}, not {len(configurations):,}")
    ((key, configuration),) = configurations
    return checked_map(f"{source}: data.{key}", configuration)


def _of_karpenter(source: str, document: Mapping[str, Any]) -> Iterator[DefaultSpread]:
    args = checked_map(f"{source}: {_KARPENTER}", document[_KARPENTER])
    yield from _listed(f"{source}: {_KARPENTER}", {"defaultingType": "List", **args}, "")


def _of_profiles(source: str, document: Mapping[str, Any]) -> Iterator[DefaultSpread]:
    version = document.get("apiVersion")
    if document.get("kind") != _KIND or not isinstance(version, str) or not version.startswith(_GROUP):
        raise ConfigurationError(f"{source}: is no {_KIND} of {_GROUP}v1")
    for number, profile in enumerate(_list(f"{source}: profiles", document.get("profiles"))):
        field = f"{source}: profiles[{number}]"
        given = checked_map(field, profile)
        name = given.get("schedulerName", _DEFAULT_PROFILE)
        for index, plugin in enumerate(_list(f"{field}.pluginConfig", given.get("pluginConfig"))):
            of_plugin = f"{field}.pluginConfig[{index}]"
            if checked_map(of_plugin, plugin).get("name") == _PLUGIN:
                args = checked_map(f"{of_plugin}.args", plugin.get("args", {}))
                yield from _listed(f"{of_plugin}.args", args, str(name))


def _listed(field: str, args: Mapping[str, Any], scheduler: str) -> Iterator[DefaultSpread]:
    kind = args.get("defaultingType", "System")
    if kind not in ("List", "System"):
        raise ConfigurationError(f"{field}.defaultingType: {one_of(['List', 'System'], kind)}")
    constraints = _list(f"{field}.defaultConstraints", args.get("defaultConstraints"))
    if constraints and kind == "System":
        raise ConfigurationError(f"{field}.defaultConstraints: must be empty without defaultingType: List")
    for number, one in enumerate(constraints):
        of_one = f"{field}.defaultConstraints[{number}]"
        yield _constraint(of_one, checked_map(of_one, one), scheduler)


def _constraint(field: str, given: Mapping[str, Any], scheduler: str) -> DefaultSpread:
    odd = next((name for name in given if name not in _FIELDS), None)
    if odd is not None:
        raise ConfigurationError(f"{field}.{odd}: has no place here: which pods count is deduced for each pod")
    when = given.get("whenUnsatisfiable")
    if when not in _ACTIONS:
        raise ConfigurationError(f"{field}.whenUnsatisfiable: {one_of(_ACTIONS, when)}")
    affinity, taints = given.get("nodeAffinityPolicy", "Honor"), given.get("nodeTaintsPolicy", "Ignore")
    for name, policy in (("nodeAffinityPolicy", affinity), ("nodeTaintsPolicy", taints)):
        if policy not in _POLICIES:
            raise ConfigurationError(f"{field}.{name}: {one_of(_POLICIES, policy)}")
    return DefaultSpread(
        topology_key=str(given.get("topologyKey", "")),
        max_skew=_whole(f"{field}.maxSkew", given.get("maxSkew")),
        when_unsatisfiable=str(when),
        scheduler=scheduler,
        min_domains=_whole(f"{field}.minDomains", given["minDomains"]) if "minDomains" in given else None,
        node_affinity_policy=affinity,
        node_taints_policy=taints,
    )


def _whole(field: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(f"{field}: {must_be('a whole number, 1 or more', value)}")
    return value


def _list(field: str, value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ConfigurationError(f"{field}: {must_be('a list', value)}")
    return value
