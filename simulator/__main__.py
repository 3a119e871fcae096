"""``python -m simulator serve``: the simulated cluster and AWS over HTTP; ``story``: the story of ``make demo``."""

import sys


def main(arguments: list[str]) -> int:
    """Run one of the two. Returns the exit status."""
    match arguments:
        case ["serve", *rest]:
            from simulator.serve import main as serve

            return serve(rest)
        case ["story"]:
            from simulator.story.scenario import load
            from simulator.story.show import as_text

            return 1 if as_text(load(), None) else 0
    print("usage: python -m simulator serve|story", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
