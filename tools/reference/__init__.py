"""The tables of names that an administrator meets, written from where the code has the words."""
