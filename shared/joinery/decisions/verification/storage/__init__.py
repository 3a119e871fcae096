"""Volumes: which claims pods mount, where their volumes are, and which free ones they may bind."""
