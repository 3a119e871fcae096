"""What is to be packed: items with demands, bin types with costs and capacities, and what may not share a bin."""
