"""What EC2 was out of lately."""
