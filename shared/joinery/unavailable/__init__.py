"""What would be asked for in vain."""
