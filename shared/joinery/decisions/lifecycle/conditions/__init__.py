"""What a claim or Node notes about itself while it serves."""
