"""The bucket in S3."""

import gzip
import zlib
from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import Any, TypeVar

from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog.document import Catalog, decode, encode
from joinery.gateways.memory.bucket import CATALOG_KEY, PAID_FOR_KEY, sealed
from joinery.objects import commitments
from joinery.objects.commitments import PaidFor
from joinery.objects.errors import ConfigurationError, NotFoundError

T = TypeVar("T")


class S3Store:
    """Implements ``Store``.

    The catalogue is half a megabyte and rarely changes, so a warm function asks S3 only whether it has. The same holds
    for what is paid for.
    """

    def __init__(self, bucket: str, region: str) -> None:
        self._bucket = bucket
        self._clients = Clients(region)
        self._cached: dict[str, tuple[str, Any]] = {}
        self._member = ""

    def of_member(self, cluster: str) -> "S3Store":
        """The same bucket for a member. Its records are its own; the catalogue is decoded once for all."""
        store = copy(self)
        store._member = cluster
        return store

    def catalog(self) -> Catalog:
        found: Catalog | None = self._current(CATALOG_KEY, lambda document: decode(self._unzipped(document)))
        if found is None:
            raise NotFoundError(f"s3://{self._bucket}/{CATALOG_KEY}: no catalogue has been stored yet")
        return found

    def put_catalog(self, catalog: Catalog) -> None:
        self._put(CATALOG_KEY, gzip.compress(encode(catalog), mtime=0))

    def paid_for(self) -> PaidFor:
        found: PaidFor | None = self._current(PAID_FOR_KEY, commitments.decode)
        if found is None:
            raise NotFoundError(f"s3://{self._bucket}/{PAID_FOR_KEY}: nobody has stored it yet")
        return found

    def put_paid_for(self, document: PaidFor) -> None:
        self._put(PAID_FOR_KEY, commitments.encode(document), "application/json")

    def record(self, controller: str, now: datetime, decision: dict[str, Any]) -> str:
        key, document = sealed(controller, now, decision, member=self._member)
        self._put(key, document)
        return key

    def _unzipped(self, document: bytes) -> bytes:
        try:
            return gzip.decompress(document)
        except (OSError, EOFError, zlib.error) as error:
            text = f"s3://{self._bucket}/{CATALOG_KEY}: not a whole gzip file: {error}"
            raise ConfigurationError(text) from error

    def _current(self, key: str, decoded: Callable[[bytes], T]) -> T | None:
        """What is under the key, from memory while it is unchanged; None for nothing."""
        tag = self._cached[key][0] if key in self._cached else ""
        if (changed := self._changed(key, tag)) is not None:
            self._cached[key] = (changed[0], decoded(changed[1]))
        return self._cached[key][1] if key in self._cached else None

    def _changed(self, key: str, tag: str) -> tuple[str, bytes] | None:
        """ETag and document, None if it is the one with that tag."""
        from botocore.exceptions import ClientError

        condition: Any = {"IfNoneMatch": tag} if tag else {}
        with translated(f"reading s3://{self._bucket}/{key}"):
            try:
                answer = self._clients.s3.get_object(Bucket=self._bucket, Key=key, **condition)
            except ClientError as refused:
                if refused.response["ResponseMetadata"]["HTTPStatusCode"] == 304:
                    return None
                raise
            return answer["ETag"], answer["Body"].read()

    def _put(self, key: str, document: bytes, content: str = "application/gzip") -> None:
        with translated(f"writing s3://{self._bucket}/{key}"):
            self._clients.s3.put_object(Bucket=self._bucket, Key=key, Body=document, ContentType=content)
