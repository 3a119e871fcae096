"""From a packing to instances: claims that are written, the calls that launch them, and what EC2 answers."""
