"""``joinery history``: what was decided over time, and what the cluster cost meanwhile, from records of decisions."""

from dataclasses import replace
from typing import Annotated

import typer

from joinery_cli.options import PageFormat, RegionOption, duration_of


def history(
    place: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|FILE|s3://BUCKET", show_default=False, help="Where the records of decisions are."
        ),
    ],
    last: Annotated[
        str, typer.Option(metavar="DURATION", help="Only records of so long before the newest, such as 24h.")
    ] = "168h",
    region: RegionOption = None,
    output: Annotated[PageFormat, typer.Option("-o", "--output", help="How to print the history.")] = PageFormat.TABLE,
) -> None:
    """Look back: cost and proven bound, nodes, spot, evictions, interruptions, and what each decision was.

    Records are only read: those of the stack's bucket, or of a copy of it.
    """
    from joinery_cli.notices import counted
    from joinery_cli.reading.records import address, read_record, record_files
    from joinery_cli.sources import region_named
    from joinery_cli.view.history import history as history_of

    with record_files(place, duration_of("--last", last), region_named(region)) as files:
        records = [replace(read_record(file), path=address(place, file)) for file in counted(files, "reading records")]
    seen = history_of(records)
    if output is PageFormat.JSON:
        from joinery_cli.output.history import history_document
        from joinery_cli.output.json import write

        write(history_document(seen))
    elif output is PageFormat.HTML:
        from joinery_cli.page.history import print_page

        print_page(seen)
    else:
        from joinery_cli.output.history import print_history

        print_history(seen)
