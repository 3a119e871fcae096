"""AWS as the installer uses it: implements ``Account`` with boto3.

Calls name the installer's own role only: its policy lets it do nothing about the access of others.
"""

import contextlib
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from joinery.gateways.account.gateway import LONGEST_CALL, AccessEntry, StoredSecret
from joinery.gateways.answers import at, entries, needed
from joinery.gateways.aws import Clients, code, translated
from joinery.gateways.partitions import partition_of
from joinery.objects.errors import ConflictError, NotFoundError, UnavailableError

if TYPE_CHECKING:
    from boto3.session import Session

#: EKS User Guide, "Review access policy permissions". Whoever may write ClusterRoles, bindings and webhooks is an
#: administrator in effect, so a narrower group would only look narrower (decision record 64).
POLICY = "AmazonEKSClusterAdminPolicy"
#: The nodes' role's own policy (``template.yaml``, ``NodeRole``).
_OF_NODES = "AssignIpv6Addresses"
SPOT_SERVICE = "spot.amazonaws.com"
#: The answer to CloudFormation: how long one try takes, and how many there are.
_ANSWER_SECONDS = 8.0
_TRIES = 3
_BUSY = (500, 502, 503, 504)


class AwsAccount:
    """Implements ``Account``. ``role``: the ARN of the installer's own role, or of that of a member, whose session is
    given then. ``webhook_secret``: of that secret.
    """

    def __init__(
        self, region: str, role: str, webhook_secret: str = "", *, session: "Callable[[], Session] | None" = None
    ) -> None:
        self._webhook_secret = webhook_secret
        self._clients = Clients(region, session=session)
        self._region = region
        self._role = role

    def access(self, cluster: str) -> AccessEntry | None:
        try:
            with translated(f"EKS DescribeAccessEntry {self._role} in {cluster}"):
                answer = self._eks.describe_access_entry(clusterName=cluster, principalArn=self._role)
        except NotFoundError:
            return None
        return AccessEntry(self._role, dict(at(answer, "accessEntry.tags") or {}))

    def grant_access(self, cluster: str, tags: Mapping[str, str]) -> None:
        from botocore.exceptions import ClientError

        doing = f"EKS CreateAccessEntry for {self._role} in {cluster}"
        with translated(doing):
            try:
                self._eks.create_access_entry(
                    clusterName=cluster, principalArn=self._role, type="STANDARD", tags=dict(tags)
                )
            except ClientError as refused:
                if code(refused) == "ResourceInUseException":
                    raise ConflictError(f"{doing}: there is one already") from refused
                raise
        with translated(f"EKS AssociateAccessPolicy {POLICY} for {self._role} in {cluster}"):
            self._eks.associate_access_policy(
                clusterName=cluster,
                principalArn=self._role,
                policyArn=f"arn:{partition_of(self._region)}:eks::aws:cluster-access-policy/{POLICY}",
                accessScope={"type": "cluster"},
            )

    def revoke_access(self, cluster: str) -> None:
        self._remove_entry(cluster, self._role)

    def ensure_spot_role(self) -> bool:
        from botocore.exceptions import ClientError

        with translated(f"IAM CreateServiceLinkedRole {SPOT_SERVICE}"):
            try:
                self._clients.iam.create_service_linked_role(AWSServiceName=SPOT_SERVICE)
            except ClientError as refused:
                # "Service role name AWSServiceRoleForEC2Spot has been taken in this account, ..."
                if code(refused) == "InvalidInput" and "has been taken" in str(refused):
                    return False
                raise
        return True

    def refresh_catalog(self, function: str) -> None:
        with translated(f"Lambda Invoke {function}"):
            self._clients.functions.invoke(
                FunctionName=function, InvocationType="Event", Payload=b'{"door": "catalog"}'
            )

    def remove_node_role(self, cluster: str, role: str, profile: str) -> None:
        from botocore.exceptions import ClientError

        iam = self._clients.iam
        with translated(f"IAM GetRole {role}"):
            try:
                answer = iam.get_role(RoleName=role)
            except iam.exceptions.NoSuchEntityException:
                return
        self._remove_entry(cluster, str(needed(answer, "Role.Arn", call=f"IAM GetRole {role}")))
        with contextlib.suppress(NotFoundError), translated(f"IAM DeleteInstanceProfile {profile}"):
            with contextlib.suppress(iam.exceptions.NoSuchEntityException):
                iam.remove_role_from_instance_profile(InstanceProfileName=profile, RoleName=role)
            iam.delete_instance_profile(InstanceProfileName=profile)
        with translated(f"IAM DeleteRole {role}"):
            answer = iam.list_attached_role_policies(RoleName=role)
            for policy in entries(answer, "AttachedPolicies", "PolicyArn", call="IAM ListAttachedRolePolicies"):
                iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
            with contextlib.suppress(iam.exceptions.NoSuchEntityException):
                iam.delete_role_policy(RoleName=role, PolicyName=_OF_NODES)
            try:
                iam.delete_role(RoleName=role)
            except ClientError as refused:
                if code(refused) == "DeleteConflict":
                    raise ConflictError(f"IAM DeleteRole {role}: {refused}") from refused
                raise

    def webhook_secret(self) -> StoredSecret:
        call = f"SecretsManager GetSecretValue {self._webhook_secret}"
        with translated(call):
            answer = self._clients.secrets.get_secret_value(SecretId=self._webhook_secret)
        fields = ("SecretString", "VersionId", "CreatedDate")
        return StoredSecret(*(needed(answer, field, call=call) for field in fields))

    def put_webhook_secret(self, text: str, *, after: str) -> None:
        from botocore.exceptions import ClientError

        doing = f"SecretsManager PutSecretValue {self._webhook_secret}"
        # The next version's id follows from this one's, and no version can be written twice: of two runs that saw the
        # same one, the second is refused (SecretsManager PutSecretValue, ClientRequestToken).
        version = str(uuid.uuid5(uuid.NAMESPACE_URL, after))
        with translated(doing):
            try:
                self._clients.secrets.put_secret_value(
                    SecretId=self._webhook_secret, ClientRequestToken=version, SecretString=text
                )
            except ClientError as refused:
                if code(refused) == "ResourceExistsException":
                    raise ConflictError(f"{doing}: another run has changed it since") from refused
                raise

    def stack_status(self, stack: str) -> str:
        call = f"CloudFormation DescribeStacks {stack}"
        with translated(call):
            answer = self._clients.stacks.describe_stacks(StackName=stack)
        return str(needed(needed(answer, "Stacks", call=call)[0], "StackStatus", call=call))

    def answer(self, url: str, body: bytes) -> None:
        import urllib3

        # The URL is a secret: whoever has it can answer in our name. So no error may carry it.
        place = url.partition("?")[0]
        with urllib3.PoolManager() as pool:
            try:
                # An empty content type, as the signature of the URL has none.
                answer = pool.request(
                    "PUT", url, body=body, headers={"Content-Type": ""}, timeout=urllib3.Timeout(_ANSWER_SECONDS),
                    retries=urllib3.Retry(
                        _TRIES - 1, allowed_methods=None, status_forcelist=_BUSY, respect_retry_after_header=False
                    ),
                )  # fmt: skip
            except urllib3.exceptions.HTTPError as failed:
                raise UnavailableError(f"PUT {place}: {type(failed).__name__}") from None
        if answer.status >= 300:
            raise UnavailableError(f"PUT {place}: {answer.status}")

    def _remove_entry(self, cluster: str, principal: str) -> None:
        with contextlib.suppress(NotFoundError), translated(f"EKS DeleteAccessEntry {principal} in {cluster}"):
            self._eks.delete_access_entry(clusterName=cluster, principalArn=principal)

    @property
    def _eks(self) -> Any:
        return self._clients.eks


assert _TRIES * _ANSWER_SECONDS < LONGEST_CALL
