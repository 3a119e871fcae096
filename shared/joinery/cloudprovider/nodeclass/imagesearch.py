"""Finding the images that an EC2NodeClass selects, in SSM and EC2 (SSM API GetParameter, EC2 API DescribeImages)."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from joinery.answers import at, entries, needed
from joinery.apis.ec2nodeclass import AMISelectorTerm, AMIStatus
from joinery.aws import Clients, translated
from joinery.cloudprovider.catalog.reservation_queries import Filters, tag_filters
from joinery.cloudprovider.nodeclass.images import Image, statuses, variants
from joinery.errors import NotFoundError

#: The age of an image that does not say when it was made: older than any that does.
_LONG_AGO = datetime(2006, 1, 1, tzinfo=UTC)
_ARCHES = {"x86_64": "amd64", "arm64": "arm64"}
Kinds = tuple[str, ...]


class ImageSearch:
    """Looks images up; ``version`` is the cluster's minor version, ``now`` decides what is deprecated.

    Only images of the class's system are looked at: a name or a tag may select some of the other.
    """

    def __init__(self, clients: Clients, version: str, now: datetime, *, is_windows: bool = False) -> None:
        self._clients, self._version, self._now, self._is_windows = clients, version, now, is_windows

    def find(self, terms: Sequence[AMISelectorTerm]) -> list[AMIStatus]:
        """The status entries, newest first. Raises ``ConfigurationError`` for an alias that stands for nothing."""
        kinds = self._kinds_of_aliases(terms)
        ids = {term.id for term in terms if term.id} | self._ids_of_parameters(terms) | kinds.keys()
        images = {image.id: image for image in self._by_id(sorted(ids))}
        for term in terms:
            if term.name or term.tags:
                images |= {image.id: image for image in self._by_term(term)}
        return statuses((image, kinds.get(image.id, ())) for image in images.values())

    def _kinds_of_aliases(self, terms: Iterable[AMISelectorTerm]) -> dict[str, Kinds]:
        """Image id to kinds of node. A parameter that cannot be read is left out: not every region has every variant."""
        found: dict[str, Kinds] = {}
        for variant in (each for term in terms if term.alias for each in variants(term, self._version)):
            if image := self._parameter(variant.parameter):
                found[image] = (*found.get(image, ()), *variant.kinds)
        return found

    def _ids_of_parameters(self, terms: Iterable[AMISelectorTerm]) -> set[str]:
        values = {self._parameter(term.ssm_parameter) for term in terms if term.ssm_parameter}
        return {value for value in values if value.startswith("ami-")}

    def _parameter(self, name: str) -> str:
        try:
            with translated(f"reading SSM parameter {name}"):
                answer = self._clients.ssm.get_parameter(Name=name)
        except NotFoundError:
            return ""
        return image_id(needed(answer, "Parameter.Value", call=f"SSM GetParameter {name}"))

    def _by_id(self, ids: list[str]) -> list[Image]:
        return self._described([{"Name": "image-id", "Values": ids}], []) if ids else []

    def _by_term(self, term: AMISelectorTerm) -> list[Image]:
        named: Filters = [{"Name": "name", "Values": [term.name]}] if term.name else []
        # An image found by name alone may be anybody's: only ours and Amazon's are meant.
        owners = [term.owner] if term.owner else ["self", "amazon"] if term.name else []
        return self._described(named + tag_filters(term.tags), owners)

    def _described(self, filters: Filters, owners: list[str]) -> list[Image]:
        asked: dict[str, Any] = {"Filters": [*filters, {"Name": "state", "Values": ["available"]}]}
        if owners:
            asked["Owners"] = owners
        with translated("describing images"):
            pages = self._clients.ec2.get_paginator("describe_images").paginate(IncludeDeprecated=True, **asked)
            return [
                self._image(image)
                for page in pages
                for image in entries(page, "Images", "ImageId", call="EC2 DescribeImages", tell=self._clients.tell)
                if ((image.get("Platform") or "").lower() == "windows") == self._is_windows
            ]

    def _image(self, image: Any) -> Image:
        ends = _moment(image.get("DeprecationTime"))
        return Image(
            id=image["ImageId"],
            name=image.get("Name") or "",
            arch=_ARCHES.get(image.get("Architecture") or "", ""),
            created_at=_moment(image.get("CreationDate")) or _LONG_AGO,
            deprecated=ends is not None and ends <= self._now,
        )


def _moment(text: str | None) -> datetime | None:
    """EC2 writes these two as texts; one that is no moment says as little as none."""
    try:
        read = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def image_id(value: str) -> str:
    """The image that an SSM parameter names: by id, or as ``recommended`` does, in a document that says more of it."""
    if not value.lstrip().startswith("{"):
        return value
    try:
        return str(at(json.loads(value), "image_id") or "")
    except ValueError:
        return ""
