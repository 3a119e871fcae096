"""Which older APIs a cluster serves is not guessed where the API server does not say."""

import pytest

from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.cluster.legacy import LegacyApis
from joinery.errors import UnavailableError
from tests.gateways.scripted import refuses, says, scripted

GROUP = {"versions": [{"version": "v1beta1"}]}


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_is_busy_does_not_say_that_older_apis_are_not_there(code: int) -> None:
    """Taken for an answer it would hide all NodeClaims of such a cluster for ten minutes, warned ones among them."""
    with scripted(*[refuses(code, "too busy")] * 4, says(200, GROUP)) as script:
        legacy = LegacyApis(script.transport, EC2NodeClass)
        with pytest.raises(UnavailableError):
            _ = legacy.serves_v1
        assert not legacy.serves_v1


@pytest.mark.parametrize("code", [403, 404])
def test_a_cluster_that_says_so_has_no_older_objects(code: int) -> None:
    """The group is not there, or discovery is nobody's right: that is an answer, and believed for a while."""
    with scripted(refuses(code, "no")) as script:
        legacy = LegacyApis(script.transport, EC2NodeClass)
        assert (legacy.fields, legacy.serves_v1) == ((), True)
        assert len(script.asked) == 1
