"""Instance types as nodes of one EC2NodeClass would have them."""
