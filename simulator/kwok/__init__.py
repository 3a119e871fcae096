"""A cloud for clusters that have none: its instances are Node objects, as kwok's are, and cost nothing."""
