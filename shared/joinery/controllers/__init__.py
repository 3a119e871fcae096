"""Read, decide, act: one controller a door, and in the rooms below what several of them use."""
