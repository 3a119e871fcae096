"""What EC2's notices mean, and what to do about them. Pure decisions."""
