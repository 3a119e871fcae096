"""What an EC2NodeClass selects, and whether it is ready."""
