"""Bottlerocket's user data: its settings as TOML (Bottlerocket settings reference).

Ours are written over the user's own.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from joinery.gateways.ec2.launch.bootstrap import Bootstrap
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClassSpec
from joinery.objects.karpenter.kubelet.configuration import KubeletConfiguration
from joinery.objects.karpenter.meta import Taint

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")
_AUTOSCALING = ("settings", "autoscaling")
_MAKE_DISK = ["apiclient", "ephemeral-storage", "init"]
_VERSION = re.compile(r"-v([0-9]+)\.([0-9]+)\.")
# What every version binds. Since 1.46 `apiclient ephemeral-storage bind` has directories of its own, and more of them:
# those of snapshotters, too (Karpenter for AWS, amifamily/bottlerocket).
_DIRECTORIES = ["/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]


def settings(own: str, spec: EC2NodeClassSpec, kubelet: KubeletConfiguration, boot: Bootstrap) -> str:
    """The user data of a node. ``own``: the user's settings, as TOML. Raises ``ConfigurationError`` if they are not."""
    document = _parsed(own)
    kubernetes = _table_at(document, "settings", "kubernetes")
    if boot.facts.dns:
        kubernetes.setdefault("cluster-dns-ip", boot.facts.dns)
    kubernetes |= _cluster(boot.facts) | _kubelet(kubelet) | {"max-pods": boot.max_pods}
    kubernetes["node-labels"] = _labels(_table_at(document, "settings", "kubernetes", "node-labels"), boot.labels)
    kubernetes["node-taints"] = _taints(boot.taints)
    if "autoscaling" in document["settings"] and "should-wait" in (group := _table_at(document, *_AUTOSCALING)):
        # Nodes of ours are in no Auto Scaling group, and kubelet would wait for one for ever.
        group["should-wait"] = False
    if spec.instance_store_policy == "RAID0":
        commands = _table_at(document, "settings", "bootstrap-commands")
        if not _mounts_disks(commands):
            commands["000-mount-instance-storage"] = {
                "commands": [
                    _MAKE_DISK,
                    ["apiclient", "ephemeral-storage", "bind", *_directories(boot.image_name)],
                ],
                "mode": "always",
                "essential": True,
            }
    return "\n".join(_table((), document)) + "\n"


def _parsed(own: str) -> dict[str, Any]:
    try:
        return tomllib.loads(own)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"spec.userData is not TOML: {error}") from error


def _table_at(document: dict[str, Any], *path: str) -> dict[str, Any]:
    """The table there, made where there is none. Raises ``ConfigurationError`` if the user's settings say otherwise."""
    for depth, key in enumerate(path, 1):
        document = document.setdefault(key, {})
        if not isinstance(document, dict):
            raise ConfigurationError(f"spec.userData: {'.'.join(path[:depth])}: {document!r} is no table")
    return document


def _directories(image_name: str) -> list[str]:
    """What names the directories to bind; nothing where the image knows them itself."""
    version = _VERSION.search(image_name)
    knows_them = version is not None and (int(version[1]), int(version[2])) >= (1, 46)
    return [] if knows_them else ["--dirs", *_DIRECTORIES]


def _mounts_disks(commands: Mapping[str, Any]) -> bool:
    """Whether the user's own commands do it: to do it twice fails, and the node does not boot."""
    tables = (each for each in commands.values() if isinstance(each, Mapping))
    lists = (each.get("commands") for each in tables)
    lines = (line for each in lists if isinstance(each, list) for line in each)
    return any(isinstance(line, list) and line[:3] == _MAKE_DISK for line in lines)


def _cluster(facts: ClusterFacts) -> dict[str, Any]:
    return {"api-server": facts.endpoint, "cluster-certificate": facts.ca, "cluster-name": facts.name}


def _kubelet(kubelet: KubeletConfiguration) -> dict[str, Any]:
    def percent(value: int | None) -> str | None:
        return None if value is None else str(value)

    servers = list(kubelet.cluster_dns)
    given: dict[str, Any] = {
        "cluster-dns-ip": servers[0] if len(servers) == 1 else servers or None,
        "system-reserved": kubelet.system_reserved,
        "kube-reserved": kubelet.kube_reserved,
        "eviction-hard": kubelet.eviction_hard,
        "eviction-soft": kubelet.eviction_soft,
        "eviction-soft-grace-period": kubelet.eviction_soft_grace_period,
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "image-gc-high-threshold-percent": percent(kubelet.image_gc_high_threshold_percent),
        "image-gc-low-threshold-percent": percent(kubelet.image_gc_low_threshold_percent),
        "cpu-cfs-quota-enforced": kubelet.cpu_cfs_quota,
    }
    return {key: value for key, value in given.items() if value not in (None, {})}


def _labels(own: Mapping[str, Any], ours: Mapping[str, str]) -> dict[str, str]:
    for key, value in own.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"spec.userData: settings.kubernetes.node-labels: {key} is {value!r} and no text")
    return {**own, **ours}


def _taints(taints: Iterable[Taint]) -> dict[str, list[str]]:
    by_key: dict[str, list[str]] = {}
    for taint in taints:
        by_key.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    return by_key


# --- TOML, which the standard library reads but does not write ---


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterable[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if path and (plain or not table):
        yield f"[{'.'.join(_key(part) for part in path)}]"
    for key, value in sorted(plain.items()):
        yield f"{_key(key)} = {_value(value)}"
    for key, value in sorted(table.items()):
        if isinstance(value, Mapping):
            yield from _table((*path, key), value)


def _key(key: str) -> str:
    return key if _BARE.match(key) else _quoted(key)


def _quoted(text: str) -> str:
    """A basic string of TOML. It is JSON's string, except that TOML wants DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}'" if "'" not in value and value.isprintable() else _quoted(value)
        case list():
            return f"[{', '.join(_value(item) for item in value)}]"
        case Mapping():
            return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())} }}"
        case _:
            return str(value)
