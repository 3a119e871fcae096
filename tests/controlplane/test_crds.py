"""The real API server takes the resource definitions, and judges objects as our models do."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
import yaml

from simulator.builders import node_claim, node_class, node_pool
from tests.controlplane.objects import connect, install, uninstall
from tests.unit.objects.karpenter.objects import ACCEPTED, MODELS, REFUSED, Case, changed, good
from tools.controlplane.plane import ADMIN, ControlPlane
from tools.crds import FOLDER, PLURALS
from tools.template import ROOT

PATHS = {kind: f"/apis/{model.api_version}/{PLURALS[model]}" for kind, model in MODELS.items()}
OURS = {(model.api_version.partition("/")[0], plural) for model, plural in PLURALS.items()}
#: Karpenter's own definitions, and the domain that they are served in here.
THEIRS, APART = ROOT / "tests" / "data" / "provider-examples" / "crds", "upstream"
BUILDERS: dict[str, Callable[[], Any]] = {
    "NodePool": node_pool,
    "NodeClaim": node_claim,
    "EC2NodeClass": node_class,
}
#: A definition is established a moment before its paths answer.
PATIENCE = urllib3.Retry(total=20, backoff_factor=0.05, backoff_max=1, status_forcelist=(404,), allowed_methods=None)


Store = Callable[[dict[str, Any]], dict[str, Any]]


class Api:
    """The custom resources' part of the API server, without a client library that would judge objects itself."""

    def __init__(self, plane: ControlPlane) -> None:
        self._pool = urllib3.PoolManager(ca_certs=str(plane.certificate), retries=PATIENCE)
        self._headers = {"Authorization": f"Bearer {ADMIN.token}"}
        self._server = plane.server

    def create(self, document: dict[str, Any], *, dry_run: bool = True, group: str = "") -> tuple[int, dict[str, Any]]:
        """Status and body. A dry run validates and fills in defaults, and stores nothing.

        ``group``: the domain below which the definitions are, where they are not in their own groups.
        """
        query, path = "?dryRun=All" if dry_run else "", PATHS[document["kind"]]
        if group:
            version = document["apiVersion"]
            apart = version.replace("/", f".{group}/")
            document, path = {**document, "apiVersion": apart}, path.replace(version, apart)
        return self._send("POST", path + query, document, "application/json")

    def merge(self, document: dict[str, Any], change: dict[str, Any], part: str = "") -> tuple[int, dict[str, Any]]:
        """Status and body of a merge patch, of the object or of a subresource."""
        path = f"{PATHS[document['kind']]}/{document['metadata']['name']}{part}"
        return self._send("PATCH", path, change, "application/merge-patch+json")

    def delete(self, document: dict[str, Any]) -> None:
        """Remove what a test stored, whatever its finalizers wait for."""
        self.merge(document, {"metadata": {"finalizers": None}})
        self._send("DELETE", f"{PATHS[document['kind']]}/{document['metadata']['name']}", {}, "application/json")

    def _send(self, method: str, path: str, body: Any, content: str) -> tuple[int, dict[str, Any]]:
        headers = self._headers | {"Content-Type": content}
        answer = self._pool.request(method, self._server + path, body=json.dumps(body), headers=headers)
        return answer.status, answer.json()


@pytest.fixture(scope="module")
def api(api_server: ControlPlane) -> Api:
    """An API server that knows our three kinds."""
    install(api_server, FOLDER)
    return Api(api_server)


@pytest.fixture
def stored(api: Api) -> Iterator[Store]:
    """Store an object under a name of this module's own, for the length of a test."""
    documents = []

    def store(document: dict[str, Any]) -> dict[str, Any]:
        documents.append(changed(document, "metadata.name", "judged"))
        status, answer = api.create(documents[-1], dry_run=False)
        assert status == 201, answer
        return documents[-1]

    yield store
    for document in documents:
        api.delete(document)


def test_the_definitions_are_structural(api: Api, api_server: ControlPlane) -> None:
    """The API server has nothing to say against the schemas."""
    definitions = json.loads(api_server.kubectl("get", "crds", "--output=json"))["items"]
    ours = [it for it in definitions if (it["spec"]["group"], it["spec"]["names"]["plural"]) in OURS]
    condition_types = [condition["type"] for it in ours for condition in it["status"]["conditions"]]
    assert len(ours) == len(OURS)
    assert "NonStructuralSchema" not in condition_types


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_a_good_object_is_accepted_and_reads_as_it_was_written(case: Case, api: Api) -> None:
    """The API server accepts it, and the defaults it fills in are those of our models."""
    status, stored = api.create(case.document)
    assert status == 201, stored
    model = MODELS[case.kind]
    assert model.model_validate(stored).spec == model.model_validate(case.document).spec  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_bad_object_is_refused_naming_the_field(case: Case, api: Api) -> None:
    """The API server's message names the field that our models name."""
    status, refusal = api.create(case.document)
    assert status == 422, refusal
    assert case.field in refusal["message"]


#: Where Karpenter's definitions judge otherwise, on purpose (docs/compatibility.md): whether they take the object.
OTHERWISE = {
    "subnets by no tags": True,
    "no capacity reservation terms": False,
    "connection tracking as durations": False,
}


@pytest.fixture(scope="module")
def karpenters(api_server: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Karpenter's definitions (v1.15.1) on the same server, in groups of another domain."""
    folder = tmp_path_factory.mktemp("crds")
    definitions = []
    for path in THEIRS.glob("*.yaml"):
        text = path.read_text()
        group = yaml.safe_load(text)["spec"]["group"]
        moved = text.replace(f"name: {path.stem.partition('_')[2]}.{group}", f"name: {_moved(path.stem)}")
        (folder / path.name).write_text(moved.replace(f"group: {group}", f"group: {group}.{APART}"))
        definitions.append(yaml.safe_load((folder / path.name).read_text()))
    install(api_server, folder)
    yield Api(api_server)
    uninstall(connect(api_server), *definitions)


def _moved(stem: str) -> str:
    group, _, plural = stem.partition("_")
    return f"{plural}.{group}.{APART}"


@pytest.mark.parametrize("case", [*ACCEPTED, *REFUSED], ids=str)
def test_an_object_is_judged_as_karpenters_definitions_judge_it(case: Case, karpenters: Api) -> None:
    """Whoever moves here or back finds objects taken that were taken there."""
    status, answer = karpenters.create(case.document, group=APART)
    assert status in (201, 422), answer
    assert (status == 201) is OTHERWISE.get(case.claim, case in ACCEPTED), answer


@pytest.mark.parametrize("kind", MODELS)
def test_what_joinery_writes_is_accepted(kind: str, api: Api, stored: Store) -> None:
    """The wire form of our objects, status included, passes the API server unchanged."""
    resource: Any = BUILDERS[kind]()
    document = stored(resource.to_wire())
    status, answer = api.merge(document, {"status": document["status"]}, "/status")
    assert status == 200, answer
    assert MODELS[kind].model_validate(answer).status == resource.status  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "field", "value", "named"),
    [
        ("NodePool", "spec.template.spec.nodeClassRef.group", "example.com", "nodeClassRef.group cannot change"),
        ("NodePool", "spec.template.spec.nodeClassRef.kind", "Other", "nodeClassRef.kind cannot change"),
        ("NodePool", "spec.replicas", 3, "cannot become dynamic"),
        ("NodeClaim", "spec.expireAfter", "1h", "spec is immutable"),
        ("NodeClaim", "spec.requirements", [{"key": "a", "operator": "Exists"}], "spec is immutable"),
    ],
)
def test_what_is_immutable_cannot_be_changed(
    kind: str, field: str, value: Any, named: str, api: Api, stored: Store
) -> None:
    """A change of it is refused: a running node would not follow."""
    document = stored(good(kind))
    status, refusal = api.merge(document, changed({}, field, value))
    assert status == 422, refusal
    assert named in refusal["message"]


def test_another_node_class_of_the_same_kind_may_be_named_later(api: Api, stored: Store) -> None:
    """``nodeClassRef.name`` is mutable: nodes then drift."""
    document = stored(good("NodePool"))
    assert api.merge(document, changed({}, "spec.template.spec.nodeClassRef.name", "other"))[0] == 200


def test_a_role_may_give_way_to_an_instance_profile(api: Api, stored: Store) -> None:
    """Identity is mutable, in one step."""
    document = stored(good("EC2NodeClass"))
    assert api.merge(document, {"spec": {"role": None, "instanceProfile": "p"}})[0] == 200


def test_a_static_pool_scales_through_its_scale_subresource(api: Api, stored: Store) -> None:
    """``kubectl scale nodepool`` works."""
    document = stored(changed(good("NodePool"), "spec.replicas", 1))
    assert api.merge(document, {"spec": {"replicas": 4}}, "/scale")[1]["spec"]["replicas"] == 4


def test_an_unknown_field_is_dropped(api: Api) -> None:
    """A structural schema prunes what it does not know."""
    status, answer = api.create(changed(good("NodePool"), "spec.unheardOf", 1))
    assert status == 201
    assert "unheardOf" not in answer["spec"]


def test_the_definitions_can_be_applied_again(api: Api, api_server: ControlPlane) -> None:
    """An upgrade of Joinery is an apply: what did not change stays at its generation."""
    generations = ("get", "crds", "--output=jsonpath={.items[*].metadata.generation}")
    before = api_server.kubectl(*generations)
    install(api_server, FOLDER)
    assert api_server.kubectl(*generations) == before


@pytest.mark.parametrize("kind", PATHS)
def test_kubectl_says_why_an_object_is_not_ready(kind: str, api: Api, api_server: ControlPlane, stored: Store) -> None:
    """In a column of its own; of one that is ready the column is empty."""
    document = stored(good(kind))
    plural = PATHS[kind].rpartition("/")[2]
    not_ready = {
        "type": "Ready",
        "status": "False",
        "reason": "Because",
        "message": "there is a reason",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    required = {"nodes": 1} if kind == "NodePool" else {}
    for condition in (not_ready, {**not_ready, "status": "True", "message": ""}):
        code, answer = api.merge(document, {"status": {"conditions": [condition], **required}}, "/status")
        assert code == 200, answer
        header, row = api_server.kubectl("get", plural, "judged").splitlines()
        assert header.split()[-1] == "WHY"
        assert row.rstrip().endswith("there is a reason") == (condition["status"] == "False")
