"""The assignment relaxation: how many bins of each type, in fractions, and the duals that price what is packed."""
