"""The command line, as ``python -m joinery``."""

from joinery_cli.main import main

if __name__ == "__main__":
    main()
