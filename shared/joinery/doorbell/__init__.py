"""The bells that wake the doors."""
