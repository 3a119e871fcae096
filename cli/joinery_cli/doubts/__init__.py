"""What a plan takes in another way than whoever wrote the files may have meant: said beside it, as notices."""
