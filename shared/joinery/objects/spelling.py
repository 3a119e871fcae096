"""Which name was probably meant by one that is none.

Nobody is corrected by it. The name stays wrong or unusual; whoever wrote it is asked "is it ...?".
"""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

from joinery.objects.karpenter import labels

#: How alike two names must be, and how near in length, for one to be the other misspelt (``roel``, ``limts``).
_ALIKE, _LONGER = 0.75, 2
#: So long is the beginning of one longer name, of which the rest was forgotten: ``requiredDuringScheduling``,
#: ``claim``.
_BEGINNING = 5
_REMEMBERED = 4096
#: Labels that nodes of EC2 have beside those that a requirement may name.
_ON_NODES = labels.WELL_KNOWN | labels.ALIASES.keys() | {
    labels.HOSTNAME, labels.NODE_CLASS, labels.REGISTERED, labels.INITIALIZED,
}  # fmt: skip
#: By domain, the labels by their names.
_LABELS: Mapping[str, Mapping[str, str]] = {
    domain: {one.rpartition("/")[2]: one for one in sorted(_ON_NODES) if one.rpartition("/")[0] == domain}
    for domain in sorted({one.rpartition("/")[0] for one in _ON_NODES - labels.ALIASES.keys()})
}
#: What Karpenter called it before v1.
_RENAMED = {"WhenUnderutilized": "WhenEmptyOrUnderutilized"}
#: What others call the same thing, by label.
_SYNONYMS: Mapping[str, Mapping[str, str]] = {
    labels.ARCH: {
        **dict.fromkeys(("x8664", "x64", "x86", "intel", "amd"), "amd64"),
        **dict.fromkeys(("aarch64", "arm", "armv8", "graviton"), "arm64"),
    },
    labels.OS: {"al2023": "linux", "al2": "linux", "bottlerocket": "linux", "win": "windows"},
}


def meant_by(key: str, known: Iterable[str]) -> str:
    """The name that was probably meant, or the empty string: ``topologykey``, ``node_selector``, ``limts``."""
    names = sorted(known)
    if _RENAMED.get(key) in names:
        return _RENAMED[key]
    longer = [name for name in names if len(key) >= _BEGINNING and name.startswith(key)]
    same = [name for name in names if _plain(name) == _plain(key)] or longer
    if len(same) == 1:
        return same[0]
    near = [name for name in names if abs(len(name) - len(key)) <= _LONGER]
    return next(iter(get_close_matches(key, near, n=1, cutoff=_ALIKE)), "")


@lru_cache(maxsize=_REMEMBERED)
def label_meant_by(key: str, *, of_types: bool = False) -> str:
    """The well-known node label that was probably meant by one that is none; or the empty string.

    Either the name or the domain is wrong, not both: ``topology.kubernetes.io/zones``,
    ``karpenter.sh/instance-family``, ``instance-type``. ``of_types``: whether to take another of AWS's domains for
    wrong too, because the label is to choose instance types; a pod may well ask for EKS Auto Mode's.
    """
    if key in _ON_NODES:
        return ""
    domain, _, name = key.rpartition("/")
    known = domain if domain in _LABELS else meant_by(domain, _LABELS)
    if known or not domain or (of_types and (domain.endswith(".amazonaws.com") or name.startswith("instance-"))):
        called = [one for names in _LABELS.values() for other, one in names.items() if _plain(other) == _plain(name)]
        if called:
            return min(called, key=lambda one: (one.rpartition("/")[0] != known, one))
    names = _LABELS.get(known, {})
    partly = [other for other in names if name.startswith(other) or other.endswith(f"-{name}")]
    return names.get(max(partly, key=len, default="") or meant_by(name, names), "")


def value_meant_by(key: str, value: str, known: Iterable[str]) -> str:
    """The value of a label that was probably meant by one that is none: ``ondemand``, ``x86_64``, ``Linux``; or the
    empty string.

    Other numbers are other values: ``m9.large`` is another instance type than ``m5.large``, whether it exists or not.
    """
    return _value_meant_by(key, value, frozenset(known))


@lru_cache(maxsize=_REMEMBERED)
def _value_meant_by(key: str, value: str, known: frozenset[str]) -> str:
    if synonym := _SYNONYMS.get(labels.canonical(key), {}).get(_plain(value)):
        return synonym if synonym in known else ""
    near = [name for name in sorted(known) if _digits(name) == _digits(value) and abs(len(name) - len(value)) <= 1]
    same = [name for name in near if _plain(name) == _plain(value)]
    alike = same or get_close_matches(value, near, n=2, cutoff=_ALIKE)
    ratios = [SequenceMatcher(None, value, name).ratio() for name in alike]
    # ``eu-central-1x`` is as near to one zone as to another, and none of them misspelt.
    is_clear = len(alike) == 1 or (len(alike) > 1 and ratios[0] > ratios[1])
    return alike[0] if is_clear and alike[0] != value else ""


@lru_cache(maxsize=_REMEMBERED)
def _digits(text: str) -> str:
    return "".join(letter for letter in text if letter.isdigit())


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
