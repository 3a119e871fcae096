"""Which older APIs a cluster serves is not guessed where the API server does not say."""

import pytest

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.legacy import ABSENT_SECONDS, LegacyApis, Served
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import Origin, with_metadata
from simulator import builders
from simulator.clock import Clock
from tests.gateways.scripted import page, refuses, says, scripted

GROUP = {"versions": [{"version": "v1beta1"}]}


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_is_busy_does_not_say_that_older_apis_are_not_there(code: int) -> None:
    """Taken for an answer it would hide all NodeClaims of such a cluster for ten minutes, warned ones among them."""
    with scripted(*[refuses(code, "too busy")] * 4, says(200, GROUP)) as script:
        legacy = LegacyApis(script.transport, EC2NodeClass)
        with pytest.raises(UnavailableError):
            legacy.served()
        assert not legacy.served().serves_v1


@pytest.mark.parametrize("code", [403, 404])
def test_a_cluster_that_says_so_has_no_older_objects(code: int) -> None:
    """The group is not there, or discovery is nobody's right: that is an answer, and believed for a while."""
    with scripted(refuses(code, "no")) as script:
        legacy = LegacyApis(script.transport, EC2NodeClass)
        assert legacy.served() == Served(fields=(), is_beta=False, serves_v1=True)
        assert len(script.asked) == 1


def test_one_read_asks_once_which_older_apis_there_are() -> None:
    """Were one of them gone by the second answer, what was read of it would be lost, and a snapshot without the claims
    says that their instances belong to nobody.
    """
    with scripted(says(200, GROUP), page()) as script:
        transport = Transport(
            connection(script.url),
            clock=lambda: len(script.asked) * 2 * ABSENT_SECONDS,  # Each answer takes twice as long as it is believed.
            patience=100 * ABSENT_SECONDS,
        )
        legacy = LegacyApis(transport, EC2NodeClass)
        KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass, legacy=legacy).claims_snapshot()
        assert script.asked.count("GET /apis/karpenter.sh") == 1
        assert "GET /apis/karpenter.sh/v1beta1/nodeclaims" in [line.split("?")[0] for line in script.asked]


def test_what_changes_nothing_is_of_the_version_that_was_read() -> None:
    """The next write is based on it: an older one would be a conflict that nobody has caused."""
    before, after = (with_metadata(builders.node_claim("a"), resource_version=version) for version in ("7", "3"))
    with scripted() as script:
        legacy = LegacyApis(script.transport, EC2NodeClass)
        stored = legacy.update(Origin("karpenter.sh/v1beta1", "NodeClaim", "a"), before, after)
    assert stored.metadata.resource_version == "7"


@pytest.mark.parametrize(
    ("versions", "read"),
    [
        (["v1alpha3"], "v1alpha3"),
        (["v1alpha3", "v1alpha4"], "v1alpha4"),
        (["v1alpha3", "v1alpha4", "v1alpha5", "v1"], "v1alpha5"),
    ],
)
def test_provisioners_are_read_in_the_last_of_their_versions(versions: list[str], read: str) -> None:
    """Versions of one definition are the same objects, and the last says all of them. NodeClaims are written in v1."""
    with scripted(says(200, {"versions": [{"version": one} for one in versions]})) as script:
        served = LegacyApis(script.transport, EC2NodeClass, needs_v1=False).served()
    assert [field for field in served.fields if field.endswith("provisioners")] == [
        f"/apis/karpenter.sh/{read}/provisioners"
    ]
    assert served.serves_v1 == ("v1" in versions)
