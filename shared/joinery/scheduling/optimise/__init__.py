"""From that packing to a cheaper one, and the bound that proves how good it is: pods and pools as lots of the optimizer. Pure."""
