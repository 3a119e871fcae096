"""Read, decide, act: one controller per verb."""
