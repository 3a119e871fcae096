"""Slips of the pen: a name that is none, and the one that was probably meant.

Nobody is corrected by it. The name stays wrong or unusual; whoever wrote it is asked "is it ...?".
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

from joinery.objects.karpenter import labels

#: How alike two names must be, and how near in length, for one to be a slip of the other (``roel``, ``limts``).
_ALIKE, _LONGER = 0.75, 2
#: How many answers are remembered, and sets of names that exist.
_REMEMBERED, _FEW = 4096, 64
#: So long is the beginning of one longer name, of which the rest was forgotten: ``requiredDuringScheduling``,
#: ``claim``.
_BEGINNING = 5
#: Labels that nodes of EC2 have beside those that a requirement may name.
_ON_NODES = labels.WELL_KNOWN | labels.ALIASES.keys() | {
    labels.HOSTNAME, labels.NODE_CLASS, labels.REGISTERED, labels.INITIALIZED,
}  # fmt: skip
#: Domains whose labels one person takes for another's: ``karpenter.sh/instance-family``.
_DOMAINS = frozenset(key.rpartition("/")[0] for key in _ON_NODES - labels.ALIASES.keys())
#: What others call a label, in a domain of Kubernetes' or Karpenter's.
_OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("architecture", "cpuarch", "cpuarchitecture"), labels.ARCH),
    "operatingsystem": labels.OS,
    **dict.fromkeys(("availabilityzone", "az"), labels.ZONE),
}
#: What others call the same thing, by label.
_SYNONYMS: Mapping[str, Mapping[str, str]] = {
    labels.ARCH: {
        **dict.fromkeys(("x8664", "x64", "x86", "intel", "amd", "i386"), "amd64"),
        **dict.fromkeys(("aarch64", "arm", "armv8", "arm64v8", "graviton"), "arm64"),
    },
    labels.CAPACITY_TYPE: {**dict.fromkeys(("ondemand", "od"), labels.ON_DEMAND), "reservation": labels.RESERVED},
    labels.OS: {"al2023": "linux", "al2": "linux", "bottlerocket": "linux", "win": "windows"},
}


def meant_by(key: str, known: Iterable[str]) -> str:
    """The name that was probably meant, or the empty string: ``topologykey``, ``node_selector``, ``limts``."""
    names = sorted(known)
    longer = [name for name in names if len(key) >= _BEGINNING and name.startswith(key)]
    same = [name for name in names if _plain(name) == _plain(key)] or longer
    if len(same) == 1:
        return same[0]
    near = [name for name in names if abs(len(name) - len(key)) <= _LONGER]
    return next(iter(get_close_matches(key, near, n=1, cutoff=_ALIKE)), "")


@lru_cache(maxsize=_REMEMBERED)
def label_meant_by(key: str) -> str:
    """The well-known node label that was probably meant by one that is none; or the empty string.

    Either the name or the domain is wrong, not both: ``topology.kubernetes.io/zones``,
    ``karpenter.sh/instance-family``, ``arch``.
    """
    if key in _ON_NODES:
        return ""
    domain, _, name = key.rpartition("/")
    names = _of_domain(domain)
    same = _of_the_same_name(name, domain)
    if domain and domain not in _DOMAINS:
        domains = {one.rpartition("/")[0]: one for one in same}
        if meant := meant_by(name, names):
            return names[meant]
        return domains.get(meant_by(domain, domains), "")
    if same or not domain:
        return next(iter(same), "")
    return _OTHER_NAMES.get(_plain(name), "") or _shortened(name, names) or names.get(meant_by(name, names), "")


@lru_cache(maxsize=_REMEMBERED)
def _of_domain(domain: str) -> Mapping[str, str]:
    """The labels of the domain, by their names."""
    return {one.rpartition("/")[2]: one for one in sorted(_ON_NODES) if one.rpartition("/")[0] == domain}


def _of_the_same_name(name: str, domain: str) -> list[str]:
    """Labels of any domain that are called so, those of this one first; of ours with or without ``instance-``."""
    names = {_plain(name)}
    if domain == labels.AWS_GROUP:
        names |= {_plain(f"instance-{name}"), _plain(name.removeprefix("instance-"))}
    same = [one for one in sorted(_ON_NODES - labels.ALIASES.keys()) if _plain(one.rpartition("/")[2]) in names]
    return sorted(same, key=lambda one: one.rpartition("/")[0] != domain)


def _shortened(name: str, names: Mapping[str, str]) -> str:
    """The label whose name goes on in this one: ``instance-memory-mib``."""
    return names[max(begun, key=len)] if (begun := [one for one in names if name.startswith(f"{one}-")]) else ""


def type_label_meant_by(key: str) -> str:
    """The label of instance types that is meant by another domain's of the same name; or the empty string.

    A NodePool may ask for any label, and one that nobody has chooses nothing: its nodes are labelled so. For a pod it
    may well be EKS Auto Mode's, ``eks.amazonaws.com/instance-family``.
    """
    meant = f"{labels.AWS_GROUP}/{key.rpartition('/')[2]}"
    return meant if meant in _ON_NODES and key not in _ON_NODES and "/instance-" in meant else ""


def value_meant_by(key: str, value: str, known: Iterable[str]) -> str:
    """The value of a label that was probably meant by one that is none: ``ondemand``, ``x86_64``, ``Linux``; or the
    empty string.

    Numbers are no slips: ``m9.large`` is another instance type than ``m5.large``, whether it exists or not.
    """
    return _value_meant_by(key, value, frozenset(known))


@lru_cache(maxsize=_REMEMBERED)
def _value_meant_by(key: str, value: str, known: frozenset[str]) -> str:
    if synonym := _SYNONYMS.get(labels.canonical(key), {}).get(_plain(value)):
        return synonym if synonym in known else ""
    alike = _by_digits(known).get(_digits(value), ())
    same = [name for name in alike if _plain(name) == _plain(value)]
    near = same or _nearest(value, [name for name in alike if abs(len(name) - len(value)) <= 1])
    return near[0] if len(near) == 1 and near[0] != value else ""


@lru_cache(maxsize=_FEW)
def _by_digits(known: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """The names by their digits: only of those with the same ones another name may be a slip."""
    names: dict[str, list[str]] = {}
    for name in sorted(known):
        names.setdefault(_digits(name), []).append(name)
    return names


def _nearest(value: str, names: Iterable[str]) -> list[str]:
    """Those to which the value is most alike: ``m5.large`` for ``m5.lrage``, beside ``m5a.large``."""
    ratios = {
        name: SequenceMatcher(None, value, name).ratio() for name in get_close_matches(value, names, cutoff=_ALIKE)
    }
    return [name for name, ratio in ratios.items() if ratio == max(ratios.values())]


def _digits(text: str) -> str:
    return "".join(letter for letter in text if letter.isdigit())


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
