"""Settings that the template reads, or the installer; functions know them from the template, if at all.

The template takes them out of its parameter ``Settings`` (``template.yaml``, "Conditions"), where their defaults stand
a second time; a test compares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What somebody may choose.

    ``default``, ``values``: in the words of the parameter ``Settings``. ``pattern``: of a value, where the template
    reads it.
    """

    default: str
    values: str
    meaning: str
    pattern: str = ""


#: A value in the parameter ``Settings``; the template's pattern is the same. It goes into policies and commands as it
#: is, so it holds no quotation mark, backslash or control character.
VALUE = r"[!#-:<-\[\]-~]+( +[!#-:<-\[\]-~]+)*"
#: Of the parameter ``Settings``. Lambda takes 4 KB of variables, and CloudFormation 4,096 characters.
MOST_CHARACTERS = 3072
_SWITCH, _TRUE_OR_FALSE = "true|false", "`true`, `false`"
_DAYS = "1|3|5|7|14|30|60|90|120|150|180|365"
#: What the template, or the installer, reads of the parameter ``Settings``.
BY_THE_TEMPLATE: Mapping[str, Setting] = {
    "WebhookEndpoint": Setting(
        default="public", values="`public`, `private`, `none`", pattern="public|private|none",
        meaning="How the API server calls the webhook. public is a Function URL, private an API inside the VPC. none "
        "means not at all, so pods wait up to a minute for the schedule.",
    ),
    "WebhookVpcEndpointId": Setting(
        default="", values="`vpce-...`", pattern="(vpce-[0-9a-f]+)?",
        meaning="For WebhookEndpoint=private: the interface endpoint of execute-api in the cluster's VPC.",
    ),
    "WebhookConcurrency": Setting(
        default="5", values="0 or more", pattern="0|[1-9][0-9]{0,3}",
        meaning="How many calls of the webhook run at once, which bounds what a flood of calls costs. 0 reserves "
        "nothing, for accounts whose quota of concurrent executions is too small.",
    ),
    "WebhookRotationDays": Setting(
        default="90", values="0 or more", pattern="0|[1-9][0-9]{0,3}",
        meaning="After so many days the webhook's token gives way to a new one. 0 never does; make rotate-token does "
        "now.",
    ),
    "AccessEntries": Setting(
        default="true", values=_TRUE_OR_FALSE, pattern=_SWITCH,
        meaning="Whether the functions' roles get access entries of EKS, as groups joinery and joinery-*. false is for "
        "clusters with aws-auth.",
    ),
    "ForceConflicts": Setting(
        default="false", values=_TRUE_OR_FALSE, pattern=_SWITCH,
        meaning="Whether the installer overwrites what others have edited in its objects, instead of saying who did. "
        "It holds for one deployment.",
    ),
    "StarterSubnetIds": Setting(
        default="", values="`subnet-...`, separated by commas", pattern="(subnet-[0-9a-f]+(, ?subnet-[0-9a-f]+)*)?",
        meaning="The subnets of the first EC2NodeClass. Without it, those with the tag karpenter.sh/discovery of the "
        "cluster's name.",
    ),
    "StarterSecurityGroupIds": Setting(
        default="", values="`sg-...`, separated by commas", pattern="(sg-[0-9a-f]+(, ?sg-[0-9a-f]+)*)?",
        meaning="The security groups of the first EC2NodeClass. Without it, those with the tag karpenter.sh/discovery "
        "of the cluster's name.",
    ),
    "ImageParameters": Setting(
        default="", values="a path, such as `/images/*`", pattern="(/[A-Za-z0-9_./-]+[*]?)?",
        meaning="Your SSM parameters that hold AMIs, where an EC2NodeClass selects by them. AWS's own may be read "
        "without it.",
    ),
    "MoreNodeRoles": Setting(
        default="", values="names of roles, separated by blanks",
        pattern="([0-9A-Za-z_+=,.@/-]+( [0-9A-Za-z_+=,.@/-]+){0,3})?",
        meaning="IAM roles that instances may be given besides the nodes' role, four at most, for EC2NodeClasses that "
        "name another. Each needs an access entry of its own.",
    ),
    "Commitments": Setting(
        default="off", values="`off`, `file`, a share such as `100%`", pattern="off|file|(100|[1-9][0-9]?)%",
        meaning="Whether Savings Plans and Reserved Instances that are idle attract pods. A share has AWS asked for "
        "them once an hour, and is how much of each is for this account and region. With file, commitments.json in "
        "the bucket is yours.",
    ),
    "KmsKeyArn": Setting(
        default="", values="an ARN", pattern="(arn:[a-z-]+:kms:[0-9a-z-]+:[0-9]+:key/[0-9A-Za-z-]+)?",
        meaning="The KMS key of bucket, queues, table, logs and the webhook's secret. Without it, AWS's own keys.",
    ),
    "PermissionsBoundaryArn": Setting(
        default="", values="an ARN", pattern="(arn:[a-z-]+:iam::([0-9]{12}|aws):policy/[0-9A-Za-z_+=,.@/-]+)?",
        meaning="The permissions boundary of every role of the stack.",
    ),
    "RolePath": Setting(
        default="/", values="`/path/`", pattern="/([0-9A-Za-z_+=,.@-]+/)*",
        meaning="The path of the functions' roles. Those of the installer and of nodes have none, because EKS names "
        "access entries by it.",
    ),
    "Members": Setting(
        default="false", values=_TRUE_OR_FALSE, pattern=_SWITCH,
        meaning="Whether other clusters of the account and region may be members of this stack. make deploy sets it "
        "where it is needed.",
    ),
    "LogLevel": Setting(
        default="INFO", values="`DEBUG`, `INFO`, `WARNING`, `ERROR`", pattern="DEBUG|INFO|WARNING|ERROR",
        meaning="How much the functions log.",
    ),
    "LogRetentionDays": Setting(
        default="30", values=f"`{_DAYS}`".replace("|", "`, `"), pattern=_DAYS,
        meaning="For how many days logs are kept.",
    ),
    "DecisionRetentionDays": Setting(
        default="30", values="1 or more", pattern="[1-9][0-9]{0,3}",
        meaning="For how many days the records of decisions are kept in the bucket.",
    ),
    "Dashboard": Setting(
        default="true", values=_TRUE_OR_FALSE, pattern=_SWITCH,
        meaning="Whether there is a CloudWatch dashboard, for 3 dollars a month from the account's fourth on.",
    ),
}  # fmt: skip


def pairs_of(text: str) -> dict[str, str]:
    """What a stack's parameter ``Settings`` says, by name, whether this release takes it or not."""
    parts = (part.strip().partition("=") for part in text.split(";"))
    return {name: value for name, _, value in parts if name}


def written(settings: Mapping[str, str]) -> str:
    """The parameter ``Settings`` that says this."""
    return "; ".join(f"{name}={value}" for name, value in settings.items())
