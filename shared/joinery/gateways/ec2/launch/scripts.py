"""Bootstrap scripts, with kubelet's settings as its flags: of images that take no configuration file.

Rules about this file: what an object says goes through ``_flag`` or ``_quoted``, and nothing else. A shell reads the
script, the image's own script reads the arguments, and a service manager splits the flags into words: three readers
with quotes of their own, so that a flag's value has no character that means something to one of them.
"""

import re
from collections.abc import Iterator, Mapping

from joinery.gateways.ec2.launch.bootstrap import Bootstrap
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClassSpec
from joinery.objects.karpenter.kubelet.checks import is_address
from joinery.objects.karpenter.kubelet.configuration import KubeletConfiguration

_PLAIN = re.compile(r"[A-Za-z0-9._/:%=<,+-]*")
#: What ends or begins a script for whoever starts Windows.
_SCRIPT_TAG = re.compile(r"</?powershell>", re.IGNORECASE)
_QUOTES = re.compile("['\u2018-\u201b]")


def of_al2(spec: EC2NodeClassSpec, kubelet: KubeletConfiguration, boot: Bootstrap) -> str:
    """The script that calls AL2's ``/etc/eks/bootstrap.sh``."""
    facts = boot.facts
    dns = _dns(kubelet, boot)
    command = [
        f"/etc/eks/bootstrap.sh {_quoted(facts.name)}"
        f" --apiserver-endpoint {_quoted(facts.endpoint)} --b64-cluster-ca {_quoted(facts.ca)}",
        *(["--ip-family ipv6"] if facts.ipv6 else []),
        *([f"--dns-cluster-ip {_quoted(dns)}"] if dns else []),
        "--use-max-pods false",
        f"--kubelet-extra-args {_quoted(' '.join(_flags(kubelet, boot)))}",
        *(["--local-disks raid0"] if spec.instance_store_policy == "RAID0" else []),
    ]
    log = "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1"
    return f"#!/bin/bash -xe\n{log}\n" + " \\\n".join(command)


def of_windows(own: str, kubelet: KubeletConfiguration, boot: Bootstrap) -> str:
    """The script that runs the user's own and then calls ``Start-EKSBootstrap.ps1`` (EKS User Guide, "Create nodes with
    optimized Windows AMIs").

    Raises ``ConfigurationError`` for what ends the script before that, and for a cluster of IPv6, which has no Windows
    nodes (EKS User Guide, "Deploy Windows nodes on EKS clusters").
    """
    facts = boot.facts
    if facts.ipv6:
        raise ConfigurationError("spec.amiFamily: EKS has no Windows nodes in clusters of IPv6")
    if tag := _SCRIPT_TAG.search(own):
        raise ConfigurationError(f"spec.userData: {tag[0]} ends the script that makes the node; write PowerShell alone")
    dns = _dns(kubelet, boot)
    command = [
        f"& $EKSBootstrapScriptFile -EKSClusterName {_literal(facts.name)}",
        f"-APIServerEndpoint {_literal(facts.endpoint)}",
        f"-Base64ClusterCA {_literal(facts.ca)}",
        f"-KubeletExtraArgs {_literal(' '.join(_flags(kubelet, boot)))}",
        # It would guess them by the VPC, wrong where the services have addresses of the user's choice.
        *([f"-DNSClusterIP {_literal(dns)}"] if dns else []),
        *([f"-ServiceCIDR {_literal(facts.service_cidr)}"] if facts.service_cidr else []),
    ]
    return "\n".join((
        "<powershell>",
        *([own] if own else []),
        '[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"',
        " ".join(command),
        "</powershell>",
    ))  # fmt: skip


def _dns(kubelet: KubeletConfiguration, boot: Bootstrap) -> str:
    """The cluster's DNS server: the class's, or else the cluster's own."""
    if not kubelet.cluster_dns:
        return boot.facts.dns
    address = kubelet.cluster_dns[0]
    if not is_address(address):
        raise ConfigurationError(f"spec.kubelet.clusterDNS: {address!r} is no IP address")
    return address


def _quoted(text: str) -> str:
    """One word for bash."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _literal(text: str) -> str:
    """A literal string of PowerShell, which reads typographic quotes as quotes, too.

    Raises ``ConfigurationError`` for a text that ends the script.
    """
    if _SCRIPT_TAG.search(text):
        raise ConfigurationError(f"{text!r} cannot be written into a script of Windows")
    return "'" + _QUOTES.sub(r"\g<0>\g<0>", text) + "'"


def _flags(kubelet: KubeletConfiguration, boot: Bootstrap) -> Iterator[str]:
    if boot.labels:
        yield _flag("node-labels", f'"{boot.node_labels}"')
    yield _flag("register-with-taints", f'"{boot.node_taints}"')
    yield _flag("max-pods", str(boot.max_pods))
    for name, value in (
        ("pods-per-core", kubelet.pods_per_core),
        ("system-reserved", _pairs(kubelet.system_reserved, "=")),
        ("kube-reserved", _pairs(kubelet.kube_reserved, "=")),
        ("eviction-hard", _pairs(kubelet.eviction_hard, "<")),
        ("eviction-soft", _pairs(kubelet.eviction_soft, "<")),
        ("eviction-soft-grace-period", _pairs(kubelet.eviction_soft_grace_period, "=")),
        ("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        ("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        ("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        ("cpu-cfs-quota", None if kubelet.cpu_cfs_quota is None else str(kubelet.cpu_cfs_quota).lower()),
    ):
        if value not in (None, ""):
            yield _flag(name, str(value))


def _flag(name: str, value: str) -> str:
    """``--name=value``, where the value is quoted as a whole or not at all.

    Raises ``ConfigurationError`` for a value that its readers might take for more than a value.
    """
    if not _PLAIN.fullmatch(value.removeprefix('"').removesuffix('"')):
        raise ConfigurationError(f"spec.kubelet: {value} cannot be passed on as --{name}")
    return f"--{name}={value}"


def _pairs(values: Mapping[str, str], sign: str) -> str:
    return f'"{",".join(f"{key}{sign}{values[key]}" for key in sorted(values))}"' if values else ""
