"""The AdmissionReview (admission.k8s.io/v1) in a call, and the answer to it.

A call comes from the Function URL (payload 2.0), or from the API in the VPC (API Gateway's REST proxy, payload 1.0).
Both take the same answer.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

#: In bytes: larger than any review of the objects for which the webhook is registered.
LARGEST_BODY = 1 << 20
_API_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
#: The API server writes the UID first, so a review that is not worth parsing can still be answered by its UID.
_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,64})"')

#: The ``request`` of an AdmissionReview.
Request = Mapping[str, Any]


def path_of(call: Mapping[str, Any]) -> bytes:
    """The path that was called. That of the API in the VPC is without its stage."""
    return str(call.get("rawPath") or call.get("path") or "").encode(errors="replace")


def body_of(call: Mapping[str, Any]) -> bytes:
    """The body's bytes, also where the Function URL wrapped them; nothing if they cannot be unwrapped."""
    text = str(call.get("body") or "").encode(errors="replace")
    if not call.get("isBase64Encoded"):
        return text
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def request_in(body: bytes) -> Request | None:
    """The request of an AdmissionReview v1; None for anything else, or for more than the API server ever sends."""
    if len(body) > LARGEST_BODY:
        return None
    try:
        review = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(review, dict) or (review.get("apiVersion"), review.get("kind")) != (_API_VERSION, _KIND):
        return None
    request = review.get("request")
    return request if isinstance(request, dict) and isinstance(request.get("uid"), str) else None


def uid_at_the_start(body: bytes) -> str:
    """The UID of a review that is not parsed; empty if it is not where the API server writes it."""
    match = _UID.search(body[:1024])
    return match[1].decode() if match else ""


def allowed(uid: str) -> dict[str, Any]:
    """The response that lets the request pass, whatever it is."""
    review = {"apiVersion": _API_VERSION, "kind": _KIND, "response": {"uid": uid, "allowed": True}}
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(review)}
