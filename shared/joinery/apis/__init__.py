"""The objects Joinery reads and writes, as data: no behaviour beyond validation, no I/O."""
