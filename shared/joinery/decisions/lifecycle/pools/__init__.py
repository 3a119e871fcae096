"""What NodePools and node classes say of themselves in their status."""
