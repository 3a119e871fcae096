"""The offerings that EC2 was out of a moment ago."""
