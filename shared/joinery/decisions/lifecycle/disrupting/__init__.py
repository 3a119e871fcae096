"""Carrying out disruption commands: how they begin, wait for replacements, retire candidates or are rolled back."""
