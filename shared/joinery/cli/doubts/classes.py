"""EC2NodeClasses that an API server takes, and with which no instance could be launched as it was meant."""

from collections.abc import Iterable, Iterator

from joinery.apis.nodeclass import NodeClass
from joinery.cli.notices import Notice, warning

_ARN = "arn:"


def arns_for_names(classes: Iterable[NodeClass]) -> Iterator[Notice]:
    """A warning for each role or instance profile that is given by its ARN, as everywhere else in AWS: IAM's calls take
    the name.
    """
    for one in classes:
        for field, noun in (("role", "role"), ("instance_profile", "instance profile")):
            given = getattr(one.spec, field, "") or ""
            if given.startswith(_ARN):
                path = "spec.role" if field == "role" else "spec.instanceProfile"
                yield warning(
                    f"{one.kind} {one.metadata.name}: {path}: must be the {noun}'s name, is its ARN; is it "
                    f"{given.rpartition('/')[2]}?"
                )
