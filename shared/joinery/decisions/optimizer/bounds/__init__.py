"""What no packing can undercut, proven by weak duality, and for small instances by branch and bound."""
