"""From the relaxation's fractions to whole bins."""
