"""Commands carried out: chains of calls, side by side, within a run's time and under its Lease, with their Events."""
