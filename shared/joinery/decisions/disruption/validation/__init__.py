"""Whether a disruption command may start, and whether it still may: each rule, and all of them in their order."""
