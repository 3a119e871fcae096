"""What a value must look like, in words. The schemas say it in regular expressions, which do not help a person."""

from joinery.objects.karpenter.kubelet import THRESHOLD
from joinery.objects.karpenter.meta import LABEL_KEY, LABEL_VALUE, TAINT_VALUE

_WORDS = {
    r"^([0-9]+(s|m|h))+$": "write hours, minutes and seconds, such as 720h or 1h30m",
    r"^(([0-9]+(s|m|h))+|Never)$": "write hours, minutes and seconds, such as 720h or 1h30m, or Never",
    r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$": "write hours and minutes, such as 8h or 1h30m",
    r"^((100|[0-9]{1,2})%|[0-9]+)$": "write a number such as 5 or a share such as 10%",
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|(.+)\s(.+)\s(.+)\s(.+)\s(.+))$": (
        "write five fields of cron such as '0 9 * * mon-fri', or @daily and the like"
    ),
    r"^[1-9][0-9]{0,4}(G|T)i?$": "write a size in G, Gi, T or Ti, such as 100Gi",
    THRESHOLD: "write a share such as 5% or an amount such as 100Mi",
    r"^[^/]+$": "write the API group alone, such as karpenter.k8s.aws",
    r"subnet-[0-9a-z]+": "write the id of a subnet, such as subnet-0123456789abcdef0",
    r"sg-[0-9a-z]+": "write the id of a security group, such as sg-0123456789abcdef0",
    r"ami-[0-9a-z]+": "write the id of an image, such as ami-0123456789abcdef0",
    r"^cr-[0-9a-z]+$": "write the id of a capacity reservation, such as cr-0123456789abcdef0",
    r"^pg-[0-9a-z]+$": "write the id of a placement group, such as pg-0123456789abcdef0",
    r"^[0-9]{12}$": "write the twelve digits of an AWS account",
    LABEL_KEY: "write a label key, such as example.com/team: letters, digits, '-', '_' and '.'",
    LABEL_VALUE: "write a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
    TAINT_VALUE: "write a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
}  # fmt: skip


def in_words(pattern: str) -> str:
    """What to write where the pattern is not met; the empty string for one that has no words."""
    return _WORDS.get(pattern, "")
