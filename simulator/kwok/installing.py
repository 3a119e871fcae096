"""What ``joinery kwok`` writes into a cluster before it begins: definitions, a Lease, a NodePool if there is none."""

import time
from collections.abc import Iterator, Mapping
from importlib.resources import files

import msgspec
import yaml

from joinery.decisions.installation import shipped
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import ConflictError, NotFoundError, UnavailableError
from joinery.objects.kubernetes.references import Document
from simulator.kwok.nodeclass import KWOKNodeClass

CLASSES = f"/apis/{KWOKNodeClass.api_version}/{KWOKNodeClass.plural}"
POOLS = "/apis/karpenter.sh/v1/nodepools"
#: Where objects are created, by kind.
_PLACES: Mapping[str, str] = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
    "KWOKNodeClass": CLASSES,
    "NodePool": POOLS,
}
#: Seconds in which an API server serves a new definition.
_PATIENCE = 20


def install(transport: Transport) -> Iterator[str]:
    """Create what is not there yet, and name each thing that was created. What is there stays as it is.

    Raises ``UnavailableError`` if the API server does not serve the definitions.
    """
    own = tuple(yaml.safe_load_all((files("simulator.kwok") / "cluster.yaml").read_text(encoding="utf-8")))
    leases = tuple(one for one in shipped.rights() if one["kind"] == "Lease")
    for document in (*shipped.definitions(), *own, *leases):
        if document["kind"] in ("CustomResourceDefinition", "Lease"):
            yield from _created(transport, document)
    for place in (CLASSES, POOLS):
        _wait_for(transport, place)
    for document in own:
        place = _PLACES[document["kind"]]
        if place in (CLASSES, POOLS) and not msgspec.json.decode(transport.get(place))["items"]:
            yield from _created(transport, document)


def _created(transport: Transport, document: Document) -> Iterator[str]:
    try:
        transport.request("POST", _PLACES[document["kind"]], document)
    except ConflictError:
        return
    yield f"{document['kind']} {document['metadata']['name']}"


def _wait_for(transport: Transport, place: str) -> None:
    ends = time.monotonic() + _PATIENCE
    while True:
        try:
            transport.get(place)
        except NotFoundError as error:
            if time.monotonic() > ends:
                raise UnavailableError(f"the API server does not serve {place}") from error
            time.sleep(0.1)
        else:
            return
