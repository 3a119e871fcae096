"""moto as a server, and the network that a node class finds by its tags."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@contextmanager
def moto(host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """moto inside the ``with``; gives its URL. Port 0 takes a free one."""
    from moto.server import ThreadedMotoServer

    # It logs every request, and the doors make many.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=host, port=port, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


def tag_network(ec2: Any, tags: Mapping[str, str]) -> None:
    """Tag a subnet in each of three zones, and a security group."""
    subnets = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": list(ZONES)}])["Subnets"]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    ec2.create_tags(Resources=[*(subnet["SubnetId"] for subnet in subnets), group], Tags=pairs)
