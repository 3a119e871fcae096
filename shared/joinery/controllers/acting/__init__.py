"""Carrying commands out: chains of calls, side by side, within a run's time under its Lease, and told in Events."""
