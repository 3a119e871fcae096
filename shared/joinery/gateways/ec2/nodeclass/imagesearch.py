"""Finding the images that an EC2NodeClass selects, in SSM and EC2 (SSM API GetParameter, EC2 API DescribeImages)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from joinery.gateways.answers import at, entries, needed
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog.reservation_queries import Filters, tag_filters
from joinery.gateways.ec2.nodeclass.images import Image, statuses, variants
from joinery.gateways.ec2.nodeclass.lookups import Look, Lookups
from joinery.objects.errors import NotFoundError
from joinery.objects.karpenter.ec2nodeclass import AMISelectorTerm, AMIStatus

#: When an image was made that does not say it: before any that does.
_LONG_AGO = datetime(2006, 1, 1, tzinfo=UTC)
_ARCHES = {"x86_64": "amd64", "arm64": "arm64"}
Kinds = tuple[str, ...]


class ImageSearch:
    """Looks images up.

    ``version``: the cluster's, such as 1.33, needed for aliases only. ``now``: decides what is deprecated.
    ``is_windows``: which images are looked at, because a name or a tag may select images of both systems. ``look``:
    shares answers with other classes.
    """

    def __init__(
        self, clients: Clients, version: str, now: datetime, *, is_windows: bool = False, look: Look | None = None
    ) -> None:
        self._clients, self._version, self._now, self._is_windows = clients, version, now, is_windows
        self._look = look or Lookups(lambda: now).anew()

    def find(self, terms: Sequence[AMISelectorTerm]) -> list[AMIStatus]:
        """The status entries, newest first. Raises ``AliasError`` for an alias that stands for nothing."""
        kinds = self._kinds_of_aliases(terms)
        ids = {term.id for term in terms if term.id} | self._ids_of_parameters(terms) | kinds.keys()
        images = {image.id: image for image in self._by_id(sorted(ids))}
        for term in terms:
            if (term.name or term.tags) and not term.ssm_parameter:
                images |= {image.id: image for image in self._by_term(term)}
        return statuses((image, kinds.get(image.id, ())) for image in images.values())

    def _kinds_of_aliases(self, terms: Iterable[AMISelectorTerm]) -> dict[str, Kinds]:
        """Image id to kinds of node. A variant whose parameter is not there is left out: not every region has all."""
        kinds: dict[str, Kinds] = {}
        for term in terms:
            for variant in variants(term, self._version) if term.alias else ():
                if image := self._parameter(variant.parameter):
                    kinds[image] = (*kinds.get(image, ()), *variant.kinds)
        return kinds

    def _ids_of_parameters(self, terms: Iterable[AMISelectorTerm]) -> set[str]:
        """Of terms without id and alias: there the parameter is all that counts (Karpenter for AWS, amifamily)."""
        names = {term.ssm_parameter for term in terms if not (term.id or term.alias)}
        values = {self._parameter(name) for name in names if name}
        return {value for value in values if value.startswith("ami-")}

    def _parameter(self, name: str) -> str:
        """The image id in an SSM parameter; empty where there is no such parameter."""
        return self._look.ask(f"parameter {name}", lambda: self._read(name))

    def _read(self, name: str) -> str:
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
        # Anybody may publish an image of that name. Only the account's own and Amazon's are meant.
        owners = [term.owner] if term.owner else ["self", "amazon"] if term.name else []
        return self._described(named + tag_filters(term.tags), owners)

    def _described(self, filters: Filters, owners: list[str]) -> list[Image]:
        call: dict[str, Any] = {"Filters": [*filters, {"Name": "state", "Values": ["available"]}]}
        if owners:
            call["Owners"] = owners
        return self._look.ask(f"images {self._is_windows} {call}", lambda: self._describe(call))

    def _describe(self, call: Mapping[str, Any]) -> list[Image]:
        with translated("describing images"):
            pages = self._clients.ec2.get_paginator("describe_images").paginate(IncludeDeprecated=True, **call)
            return [
                self._image(image)
                for page in pages
                for image in entries(page, "Images", "ImageId", call="EC2 DescribeImages", log=self._clients.log)
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
    """A moment that EC2 writes as a text; None for a text that is none."""
    try:
        read = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def image_id(value: str) -> str:
    """The image id in an SSM parameter's value, which is the id, or (``recommended``) a JSON document with the id in
    it.
    """
    if not value.lstrip().startswith("{"):
        return value
    try:
        return str(at(json.loads(value), "image_id") or "")
    except ValueError:
        return ""
