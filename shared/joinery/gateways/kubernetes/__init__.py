"""The gateway to the Kubernetes API."""
