"""Every real AdmissionReview, and every call of a Function URL, through the real door of the webhook.

``RINGS`` says which bells each of them is worth. Whatever comes is allowed, under the UID that it came with.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from joinery.gateways.doorbell.gateway import Bell
from simulator.doors.doors import TOKEN, Call, Doors
from simulator.world import World

REAL = Path(__file__).parents[1] / "data/real"
NOTHING: frozenset[Bell] = frozenset()
PODS_WAIT = frozenset({Bell.PROVISIONING})
A_NODE_CHANGES = frozenset({Bell.LIFECYCLE})
A_CLAIM_GOES = frozenset({Bell.PROVISIONING, Bell.LIFECYCLE})

RINGS = {
    "admission/event-create-converted-to-core": PODS_WAIT,
    "admission/event-create-core-old-scheduler": PODS_WAIT,
    "admission/event-create-events-k8s-io": PODS_WAIT,
    "admission/event-dry-run": NOTHING,
    "admission/event-update-series-patch": PODS_WAIT,
    "admission/node-status-heartbeat": NOTHING,
    "admission/node-status-not-ready": A_NODE_CHANGES,
    "admission/nodeclaim-delete": A_CLAIM_GOES,
    "admission/nodepool-status-only": NOTHING,
    "lambda/function-url-base64-event-create": PODS_WAIT,
    "lambda/function-url-base64-event-update": PODS_WAIT,
    "lambda/function-url-event-create-events-k8s-io": PODS_WAIT,
    "lambda/function-url-event-update-series-patch": PODS_WAIT,
    "lambda/function-url-get-browser": NOTHING,
    "lambda/function-url-node-status-heartbeat": NOTHING,
}

every_call = pytest.mark.parametrize("name", sorted(RINGS))


def read(name: str) -> dict[str, Any]:
    """One of the real files."""
    document: dict[str, Any] = json.loads((REAL / f"{name}.json").read_text())
    return document


def call_of(name: str, *, token: str = TOKEN, wrapped: bool = False) -> dict[str, Any]:
    """The file as the Function URL passes it on; a review by itself is put into a real call."""
    document = read(name)
    if "requestContext" not in document:
        text = json.dumps(document)
        around = read("lambda/function-url-event-create-events-k8s-io")
        body = base64.b64encode(text.encode()).decode() if wrapped else text
        document = {**around, "body": body, "isBase64Encoded": wrapped}
    return document if name.endswith("browser") else {**document, "rawPath": f"/{token}"}


def uid_of(name: str) -> str:
    """The UID of the request in a file."""
    document = read(name)
    if "requestContext" in document:
        body = document["body"]
        document = json.loads(base64.b64decode(body) if document["isBase64Encoded"] else body)
    return str(document["request"]["uid"])


@pytest.fixture
def doors(world: World) -> Iterator[Doors]:
    """The doors, open."""
    with Doors(world).open() as opened:
        yield opened


def rung(doors: Doors) -> frozenset[Bell]:
    """The bells that rang."""
    return frozenset(bell for _, bell in doors.world.doorbell.rings)


def answer(call: Call) -> dict[str, Any]:
    """The review in a call's answer."""
    assert (call.error, call.result["statusCode"]) == ("", 200)
    review: dict[str, Any] = json.loads(call.result["body"])
    return review


def test_the_table_has_every_review_and_every_call() -> None:
    """No file is left out."""
    files = [*(REAL / "admission").glob("*.json"), *(REAL / "lambda").glob("function-url-*.json")]
    assert {f"{path.parent.name}/{path.stem}" for path in files} == set(RINGS)


@every_call
@pytest.mark.parametrize("wrapped", [False, True], ids=["text", "base64"])
def test_a_review_rings_what_it_is_worth(doors: Doors, name: str, wrapped: bool) -> None:
    """And no other bell, whether or not the Function URL put the body into base64."""
    doors.invoke("webhook", call_of(name, wrapped=wrapped))
    assert rung(doors) == RINGS[name]


@pytest.mark.parametrize("name", sorted(name for name in RINGS if not name.endswith("browser")))
def test_every_review_is_allowed_under_its_own_uid(doors: Doors, name: str) -> None:
    """The API server drops an answer to another request."""
    review = answer(doors.invoke("webhook", call_of(name)))
    assert review["response"] == {"uid": uid_of(name), "allowed": True}
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")


@pytest.mark.parametrize("name", ["admission/node-status-not-ready", "admission/nodepool-status-only"])
@pytest.mark.parametrize("odd", [None, True, "", {}, [None], [[]], [{"type": None}]])
def test_odd_conditions_are_allowed_as_any_other(doors: Doors, name: str, odd: object) -> None:
    """Nothing that a status may hold makes the door fail: the API server would wait for it in vain."""
    call = call_of(name)
    review = json.loads(call["body"])
    review["request"]["object"]["status"]["conditions"] = odd
    assert answer(doors.invoke("webhook", {**call, "body": json.dumps(review)}))["response"]["allowed"]


@every_call
def test_a_stranger_is_told_nothing(doors: Doors, name: str) -> None:
    """Whoever finds the URL without its secret path, a browser among them, rings no bell."""
    stranger = doors.invoke("webhook", call_of(name, token="x" * len(TOKEN)))
    assert (stranger.error, stranger.result) == ("", {"statusCode": 403})
    assert rung(doors) == NOTHING
