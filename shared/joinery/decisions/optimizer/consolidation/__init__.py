"""Which bins that stand are worth their cost, and which should be emptied into the others or into new ones."""
