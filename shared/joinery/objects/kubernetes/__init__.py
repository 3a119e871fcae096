"""Kubernetes' own objects, as far as a decision needs them."""
