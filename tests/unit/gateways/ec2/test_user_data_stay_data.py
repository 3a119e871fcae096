"""Whatever an object says, user data say no more than that: it is no command, no setting and no part of its own.

What is written is read as a node reads it: bash runs the script, with stubs for what it calls; MIME is taken apart as
cloud-init (Python's email) and as nodeadm (Go's mime/multipart, line by line) do; TOML, YAML and the words of a command
of PowerShell are parsed.
"""

import base64
import gzip
import json
import shlex
import subprocess
import tomllib
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from joinery.gateways.ec2.launch.bootstrap import Bootstrap, bootstrap
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.userdata import user_data, user_data_problem
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec
from joinery.objects.karpenter.meta import Taint
from tests.properties import examples

BREAKING_OUT = [
    "10.0.0.10' ; touch X ; echo '",
    '" --node-labels="a=b',
    "$(touch X)",
    "`touch X`",
    "a,b=c",
    "a\n--//--\nb",
    "--//",
    "\n[settings.kubernetes]\nmax-pods = 1",
    "'''",
    "\u2019; touch X; \u2018",
    "</powershell>",
    "a b",
    "\\",
]
HOSTILE = st.sampled_from(BREAKING_OUT) | st.text(max_size=8)


#: What user data say of an object's fields, as somebody might write them.
USUAL: dict[str, Any] = {
    "kubelet": {
        "clusterDNS": ["10.0.0.10"],
        "maxPods": 29,
        "podsPerCore": 2,
        "systemReserved": {"cpu": "100m", "pid": "50"},
        "kubeReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"nodefs.available": "1Gi"},
        "evictionSoftGracePeriod": {"nodefs.available": "1m30s"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 70,
        "cpuCFSQuota": True,
    },
    "labels": {"team": "a", "example.com/tier": ""},
    "taints": {"gpu": "true"},
    "cluster": "demo",
}


def planted(value: Any, hostile: str, places: list[int]) -> Any:
    """The value with one of its names or leaves replaced: that before which ``places[0]`` others are."""
    if isinstance(value, dict):
        return {planted(key, hostile, places): planted(item, hostile, places) for key, item in value.items()}
    if isinstance(value, list):
        return [planted(item, hostile, places) for item in value]
    places[0] -= 1
    return hostile if places[0] == -1 else value


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """The usual objects, with something hostile in one place, or in none."""
    section = draw(st.sampled_from([*USUAL] + ["kubelet"] * 3))
    place = draw(st.integers(0, 30 if section == "kubelet" else 4))
    return USUAL | {section: planted(USUAL[section], draw(HOSTILE), [place])}


LINES = st.lists(st.sampled_from([*BREAKING_OUT, "#!/bin/bash", "#cloud-config", "echo hello", "a: b"]), max_size=5)
FLAGS = {
    "node-labels",
    "register-with-taints",
    "max-pods",
    "pods-per-core",
    "system-reserved",
    "kube-reserved",
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "eviction-max-pod-grace-period",
    "image-gc-high-threshold",
    "image-gc-low-threshold",
    "cpu-cfs-quota",
}

#: bash takes a function's name with slashes before the file of that name.
STUBS = """
PATH=
tee() { :; }
logger() { :; }
command_not_found_handle() { printf 'ran %s' "$1" >>"$OUT"; }
/etc/eks/bootstrap.sh() { printf '%s\\0' "$@" >>"$OUT"; printf '\\n' >>"$OUT"; }
"""


def read(family: str, kubelet: dict[str, Any], **given: Any) -> EC2NodeClassSpec | None:
    """A class's spec; None where admission would refuse it."""
    wire = {
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "amiSelectorTerms": [{"id": "ami-1"}],
        "amiFamily": family,
        "role": "nodes",
        "kubelet": kubelet,
    }
    try:
        return EC2NodeClass.model_validate({"metadata": {"name": "default"}, "spec": wire | given}).spec
    except ValidationError:
        return None


def told(said: dict[str, Any]) -> Bootstrap | None:
    """What a node is told; None where that is refused."""
    name = said["cluster"]
    facts = ClusterFacts(name=name, endpoint=f"https://{name}", ca="Q0E=", service_cidr="172.20.0.0/16", version="1.33")
    given = [Taint.model_construct(key=key, value=value, effect="NoSchedule") for key, value in said["taints"].items()]
    try:
        return bootstrap(facts, labelled=said["labels"], taints=given, capacity_type="spot", max_pods=29)
    except ConfigurationError:
        return None


def written(spec: EC2NodeClassSpec | None, boot: Bootstrap | None) -> str | None:
    """The user data in the clear; None where they are refused."""
    if spec is None or boot is None:
        return None
    try:
        data = base64.b64decode(user_data(spec, boot))
    except ConfigurationError:
        return None
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()


def as_cloud_init_reads(text: str) -> list[str]:
    """Bodies of the parts, nested ones too."""
    return [str(part.get_payload()) for part in message_from_string(text).walk() if not part.is_multipart()]


def as_nodeadm_reads(text: str) -> list[str]:
    """Bodies of the outermost parts."""
    boundary = str(message_from_string(text).get_boundary())
    inside = False
    found: list[list[str]] = []
    for line in text.split("\n"):
        if line.rstrip() == f"--{boundary}--":
            break
        if line.rstrip() == f"--{boundary}":
            inside = True
            found.append([])
        elif inside:
            found[-1].append(line)
    return ["\n".join(lines).partition("\n\n")[2] for lines in found]


def run(script: str, out: Path) -> list[list[str]]:
    """The arguments of each call of the bootstrap script. Raises ``AssertionError`` if anything else was run."""
    out.unlink(missing_ok=True)
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", f"{STUBS}{script}"], env={"OUT": str(out)}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    calls = out.read_text().split("\n")
    assert calls.pop() == ""
    assert not any("ran " in call for call in calls)
    return [call.split("\0")[:-1] for call in calls]


@given(objects())
@examples(200)
def test_the_script_of_al2_calls_one_script_with_what_was_said(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, Any]
) -> None:
    """Which splits kubelet's flags into words once more, as systemd does: each flag is there once."""
    boot, name = told(said), said["cluster"]
    text = written(read("AL2", said["kubelet"]), boot)
    if text is None or boot is None or "\0" in name:
        return
    (arguments,) = run(as_cloud_init_reads(text)[-1], tmp_path_factory.getbasetemp() / "arguments")
    assert arguments[:5] == [name, "--apiserver-endpoint", f"https://{name}", "--b64-cluster-ca", "Q0E="]
    assert arguments[-2] == "--kubelet-extra-args"
    words = shlex.split(arguments[-1])
    flags = dict(word.removeprefix("--").split("=", 1) for word in words)
    assert len(flags) == len(words)
    assert flags.keys() <= FLAGS
    assert dict(pair.split("=") for pair in flags["node-labels"].split(",")) == boot.labels
    assert flags["register-with-taints"].count(",") == len(boot.taints) - 1
    assert flags["max-pods"] == "29"


@given(objects(), LINES)
@examples(200)
def test_the_document_of_al2023_ends_with_the_node_config(said: dict[str, Any], own: list[str]) -> None:
    """Behind the user's own part, which is there as it was written."""
    boot, kubelet = told(said), said["kubelet"]
    text = written(read("AL2023", kubelet, userData="\n".join(own)), boot)
    if text is None or boot is None:
        return
    bodies = as_nodeadm_reads(text)
    assert bodies[:-1] == (["\n".join(own)] if "".join(own).strip() else [])
    assert as_cloud_init_reads(text)[-1] == bodies[-1]
    found = yaml.safe_load(bodies[-1])["spec"]["kubelet"]
    assert found == json.loads(bodies[-1].partition("\n")[2])["spec"]["kubelet"]
    taints = f'--register-with-taints="{boot.node_taints}"'
    assert found["flags"] == ["--max-pods=29", taints, f'--node-labels="{boot.node_labels}"']
    assert len(found["config"]["registerWithTaints"]) == len(boot.taints)
    assert {key: found["config"][key] for key in kubelet} == kubelet | {"maxPods": 29}


def as_powershell_reads(line: str) -> list[str]:
    """The words of a command: literals without their quotes, of which there are five kinds, doubled inside."""
    quotes, words, at = "'\u2018\u2019\u201a\u201b", [""], 0
    while at < len(line):
        if line[at] in quotes:
            at += 1
            while line[at] not in quotes or (at + 1 < len(line) and line[at + 1] in quotes):
                at += line[at] in quotes
                words[-1] += line[at]
                at += 1
        elif line[at] == " ":
            words.append("")
        else:
            assert line[at].isalnum() or line[at] in "&-$", line
            words[-1] += line[at]
        at += 1
    return words


@given(objects(), LINES)
@examples(200)
def test_the_script_of_windows_ends_with_one_command(said: dict[str, Any], own: list[str]) -> None:
    """Behind the user's own lines, within the one block that is run."""
    boot = told(said)
    text = written(read("Windows2022", said["kubelet"], userData="\n".join(own)), boot)
    if text is None or boot is None or "\n" in said["cluster"]:
        return
    assert text.lower().count("powershell>") == 2
    *before, command, end = text.split("\n")
    assert end == "</powershell>"
    assert "\n".join(before[1:-1]) == "\n".join(own)
    words = as_powershell_reads(command)
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert given["-EKSClusterName"] == said["cluster"]
    flags = shlex.split(given["-KubeletExtraArgs"])
    assert {flag.removeprefix("--").split("=")[0] for flag in flags} <= FLAGS
    assert len({flag.split("=")[0] for flag in flags}) == len(flags)
    assert f"--node-labels={boot.node_labels}" in flags


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Multipart user data as somebody might write them who wants to be read as more than his own parts."""
    boundary = draw(st.sampled_from(["B", "//", "//1"]))
    kinds = ["text/x-shellscript", "text/cloud-config", 'multipart/mixed; boundary="//"', "message/rfc822", "text/\tx"]
    pieces = [f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{boundary}"\n']
    for _ in range(draw(st.integers(0, 3))):
        pieces.append(f"--{boundary}\nContent-Type: {draw(st.sampled_from(kinds))}")
        pieces.append(draw(st.sampled_from(["", "X-Other: --//\n", "X-Other: a\n --//\n", "Merge-Type: list()\n"])))
        pieces += draw(LINES)
    return "\n".join([*pieces, f"--{boundary}--"])


@given(documents() | st.text().map("Content-Type: multipart/mixed; boundary=B\n\n--B\n{}".format))
@examples(100)
def test_no_document_of_the_user_hides_ours(own: str) -> None:
    """The last part of all is ours, in both readings."""
    text = written(read("AL2023", {}, userData=own), told(USUAL))
    if text is not None:
        assert json.loads(as_nodeadm_reads(text)[-1].partition("\n")[2])["kind"] == "NodeConfig"
        assert as_cloud_init_reads(text)[-1] == as_nodeadm_reads(text)[-1]


_KEYS = ("settings", "kubernetes", "node-labels", "node-taints", "autoscaling", "should-wait", "bootstrap-commands")
_ANYTHING = st.recursive(
    st.sampled_from([1, True, "x", [], ["a"]]),
    lambda children: st.dictionaries(st.sampled_from(_KEYS), children, max_size=3) | st.lists(children, max_size=2),
    max_leaves=8,
)


def toml(value: Any) -> str:
    """A value as inline TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


@given(st.dictionaries(st.sampled_from(_KEYS), _ANYTHING, max_size=3), _ANYTHING | st.none(), objects())
@examples(300)
def test_the_settings_of_bottlerocket_hold_what_was_said_or_are_refused(
    own: dict[str, Any], inner: Any, said: dict[str, Any]
) -> None:
    """Whatever the user's own settings are, they are TOML: a class of which nothing is said can be launched."""
    settings = own if inner is None else own | {"settings": inner}
    data = "\n".join(f"{key} = {toml(value)}" for key, value in settings.items())
    kubelet = {key: value for key, value in said["kubelet"].items() if key != "podsPerCore"}
    spec, boot = read("Bottlerocket", kubelet, userData=data, instanceStorePolicy="RAID0"), told(said)
    if spec is None or boot is None:
        return
    text = written(spec, boot)
    assert (text is None) == (user_data_problem(spec) is not None)
    if text is not None:
        kubernetes = tomllib.loads(text)["settings"]["kubernetes"]
        assert boot.labels.items() <= kubernetes["node-labels"].items()
        assert sum(map(len, kubernetes["node-taints"].values())) == len(boot.taints)
        assert (kubernetes["max-pods"], kubernetes["cluster-name"]) == (29, said["cluster"])
        if "evictionHard" in kubelet:
            assert kubernetes["eviction-hard"] == kubelet["evictionHard"]
