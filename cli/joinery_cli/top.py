"""``joinery top``: the cluster as it changes. Nodes, the pods that wait, what comes next, and what each waits for."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery_cli.options import (
    CatalogOption,
    DaemonsOption,
    EveryOption,
    Files,
    ListFormat,
    MoreFiles,
    NowOption,
    Recursive,
    RegionOption,
    check_every,
    duration_of,
)
from joinery_cli.output.visible import line_of

if TYPE_CHECKING:
    from joinery_cli.view.top_view import TopView


def top(
    more_files: MoreFiles = None,
    files: Files = None,
    recursive: Recursive = False,
    records: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|FILE|s3://BUCKET",
            help="Records of decisions, shown one after another as they were decided.",
        ),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Of records: only those of so long before the newest, such as 24h."),
    ] = None,
    every: EveryOption = 5.0,
    catalog_file: CatalogOption = None,
    region: RegionOption = None,
    now: NowOption = None,
    daemons: DaemonsOption = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long each of the two decisions of a look may take.")
    ] = 10.0,
    output: Annotated[
        ListFormat,
        typer.Option(
            "-o",
            "--output",
            help="The screen, or a table where there is no terminal; wide: that table with more columns; json: a line "
            "a look.",
        ),
    ] = ListFormat.TABLE,
) -> None:
    """Look at nodes and pods while they change: what each node waits for, why it stays, and what comes next.

    Nothing is changed, neither in files nor in the current kubeconfig's cluster, which is read where no file is given.

    Keys: s sorts, / filters, f folds, Enter says why, space stops the time, left and right go through it, q ends.
    """
    from joinery_cli.decision_input import check_time_limit
    from joinery_cli.live.feeds import Asked, objects_feed, records_feed
    from joinery_cli.notices import counted
    from joinery_cli.reading.records import read_record, record_files
    from joinery_cli.sources import region_named

    check_time_limit(time_limit)
    check_every(every)
    paths = [*(files or ()), *(more_files or ())]
    if records and paths:
        raise ConfigurationError("--records: shows what was recorded; give it without files")
    if "-" in paths:
        raise ConfigurationError("-f -: standard input can be read only once; give a file")
    asked = Asked(
        files=tuple(paths),
        recursive=recursive,
        catalog_file=catalog_file,
        region=region,
        now=now,
        daemons=daemons,
        time_limit=time_limit,
        is_quiet=is_on_screen(output),
    )
    with ExitStack() as stack:
        if records:
            length = duration_of("--last", last) if last else None
            found = stack.enter_context(record_files(records, length, region_named(region)))
            feed = records_feed([read_record(file) for file in counted(found, "reading records")], asked)
            every = 0.0 if output is ListFormat.JSON else every
        else:
            feed = objects_feed(asked)
        show(feed, output, every=every)


def show(feed: "Iterator[TopView]", output: ListFormat, *, every: float) -> None:
    """The views of a feed: on the terminal's screen; the first alone as a table, where there is no terminal; or each as
    a line of JSON. ``every``: seconds between two of them.
    """
    if output is ListFormat.JSON:
        _stream(feed, every)
        return
    if is_on_screen(output):
        from joinery_cli.live.screen import Top

        if error := Top(feed, every).run():
            raise error
        return
    if output is ListFormat.WIDE:
        from joinery_cli.output.top_lines import print_wide

        print_wide(next(feed))
        return
    from joinery_cli.output.top_lines import print_view

    print_view(next(feed))


def is_on_screen(output: ListFormat) -> bool:
    """Whether there is a terminal to look at and to type on, and nothing else is asked for."""
    return output is ListFormat.TABLE and sys.stdout.isatty() and sys.stdin.isatty()


def _stream(feed: "Iterator[TopView]", every: float) -> None:
    """A line for each view. What cannot be reached now is said on standard error, and tried again."""
    from joinery_cli.output.top_json import top_document, write_line

    while True:
        try:
            view = next(feed, None)
        except UnavailableError as error:
            print(f"joinery: {line_of(error)}; trying again", file=sys.stderr)
        else:
            if view is None:
                return
            write_line(top_document(view))
        time.sleep(every)
