"""What the world looks like at one moment: the snapshot a decision is made from, and views of it."""
