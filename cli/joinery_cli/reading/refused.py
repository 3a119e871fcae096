"""Bad input with more than one thing wrong: whoever has to mend a file wants to hear of all of it at once."""

from collections.abc import Iterator, Sequence

from joinery.objects.errors import ConfigurationError

_MOST = 20


class RefusedFilesError(ConfigurationError):
    """Everything that is wrong with the files: ``problems`` name file, object and field."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems[:_MOST]))
        self.problems = tuple(problems)

    def lines(self) -> Iterator[str]:
        """A line for each problem, and one for how many more there are."""
        yield from self.problems[:_MOST]
        if len(self.problems) > _MOST:
            yield f"and {len(self.problems) - _MOST:,} more"
