"""AWS's partitions: which one a region belongs to, and how its services are addressed there.

Source: botocore's ``partitions.json``, with which a test compares this table. Reading that file costs a cold start more
than the requests that are made with it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Partition:
    """``name``: what ARNs begin with after ``arn:``. ``suffix``: the domain of its services' endpoints.
    ``price_list``: the region that answers the Price List API; empty where none does.
    """

    name: str
    suffix: str
    price_list: str


_STANDARD = Partition("aws", "amazonaws.com", "us-east-1")
#: Regions of the standard partition that are nearer to those whose names begin so.
_NEARER = {"ap": "ap-south-1", "eu": "eu-central-1"}
#: By what a region's name begins with.
_PARTITIONS = {
    "cn": Partition("aws-cn", "amazonaws.com.cn", "cn-northwest-1"),
    "us-gov": Partition("aws-us-gov", "amazonaws.com", ""),
    "us-iso": Partition("aws-iso", "c2s.ic.gov", "us-iso-east-1"),
    "us-isob": Partition("aws-iso-b", "sc2s.sgov.gov", "us-isob-east-1"),
    "eu-isoe": Partition("aws-iso-e", "cloud.adc-e.uk", "eu-isoe-west-1"),
    "us-isof": Partition("aws-iso-f", "csp.hci.ic.gov", "us-isof-south-1"),
    "eusc": Partition("aws-eusc", "amazonaws.eu", "eusc-de-east-1"),
}


def of(region: str) -> Partition:
    """The partition of a region."""
    return next((one for start, one in _PARTITIONS.items() if region.startswith(f"{start}-")), _STANDARD)


def partition_of(region: str) -> str:
    """The partition's name, as in ARNs."""
    return of(region).name


def endpoint(service: str, region: str) -> str:
    """A regional service's public address, in the partition of the region."""
    return f"https://{service}.{region}.{of(region).suffix}"


def pricing_region(region: str) -> str:
    """Where the prices of a region are asked for; empty where nobody says them."""
    partition = of(region)
    return (
        _NEARER.get(region.partition("-")[0], partition.price_list) if partition is _STANDARD else partition.price_list
    )
