"""Consolidation: which nodes are worth their price, and what should replace the others."""
