"""Just-in-time nodes for Amazon EKS, decided outside the cluster."""

#: Written by ``python -m tools.version`` from pyproject.toml: Lambda has no metadata of the package.
__version__ = "0.1.0"
