"""The bucket in S3."""

import gzip
import zlib
from datetime import datetime
from typing import Any

from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog.document import Catalog, decode, encode
from joinery.gateways.memory.bucket import CATALOG_KEY, sealed
from joinery.objects.errors import ConfigurationError, NotFoundError


class S3Store:
    """Implements ``Store``.

    The catalogue is half a megabyte and rarely changes, so a warm function asks S3 only whether it has.
    """

    def __init__(self, bucket: str, region: str) -> None:
        self._bucket = bucket
        self._clients = Clients(region)
        self._cached: tuple[str, Catalog] | None = None

    def catalog(self) -> Catalog:
        if (changed := self._changed()) is not None:
            tag, document = changed
            self._cached = (tag, decode(self._unzipped(document)))
        if self._cached is None:
            raise NotFoundError(f"s3://{self._bucket}/{CATALOG_KEY}: no catalogue has been stored yet")
        return self._cached[1]

    def put_catalog(self, catalog: Catalog) -> None:
        self._put(CATALOG_KEY, gzip.compress(encode(catalog), mtime=0))

    def record(self, controller: str, now: datetime, decision: dict[str, Any]) -> str:
        key, document = sealed(controller, now, decision)
        self._put(key, document)
        return key

    def _unzipped(self, document: bytes) -> bytes:
        try:
            return gzip.decompress(document)
        except (OSError, EOFError, zlib.error) as error:
            text = f"s3://{self._bucket}/{CATALOG_KEY}: not a whole gzip file: {error}"
            raise ConfigurationError(text) from error

    def _changed(self) -> tuple[str, bytes] | None:
        """ETag and document, None if it is the one in memory."""
        from botocore.exceptions import ClientError

        condition = {"IfNoneMatch": self._cached[0]} if self._cached else {}
        with translated(f"reading s3://{self._bucket}/{CATALOG_KEY}"):
            try:
                answer = self._clients.s3.get_object(
                    Bucket=self._bucket,
                    Key=CATALOG_KEY,
                    **condition,  # type: ignore[arg-type]
                )
            except ClientError as refused:
                if refused.response["ResponseMetadata"]["HTTPStatusCode"] == 304:
                    return None
                raise
            return answer["ETag"], answer["Body"].read()

    def _put(self, key: str, document: bytes) -> None:
        with translated(f"writing s3://{self._bucket}/{key}"):
            self._clients.s3.put_object(Bucket=self._bucket, Key=key, Body=document, ContentType="application/gzip")
