"""Build and check all that a release has, and say how it is published: ``make release``.

``dist`` gets what ``tools.package`` makes, the template whose code lies in a bucket (``sam package``), that of members,
which has no code, and ``SHA256SUMS``. Publishing needs accounts, so its commands are printed.

Lambda takes code from a bucket of the stack's own region, so the template is for that region. The Serverless
Application Repository copies the code for others.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.artifacts.archive import digest, files_of
from tools.deploy import dated
from tools.package import DIST, packaged
from tools.template import LAMBDA_BUILD, MEMBER, ROOT, TEMPLATE
from tools.version import project_version

SUMS = "SHA256SUMS"


class ReleaseError(Exception):
    """Something stands against the release. The message says what, and what to do."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--uv", type=Path, required=True)
    parser.add_argument("--sam", type=Path, required=True)
    parser.add_argument(
        "--region", required=True, help="of the bucket, and of the stacks that are made of the template"
    )
    parser.add_argument("--bucket", required=True, help="gets the code of functions and layers")
    parser.add_argument("--releases", required=True, help="the address below which the files of dist will lie")
    given = parser.parse_args()
    version = project_version()
    try:
        for name in ("bucket", "region", "releases"):
            if not getattr(given, name):
                raise ReleaseError(f"say {name.upper()}=…: make release BUCKET=… REGION=… RELEASES=https://…")
        refuse(version, (ROOT / "CHANGELOG.md").read_text(), _git("status", "--porcelain"), tags_elsewhere())
        wheel, *_ = packaged(DIST, uv=given.uv, releases=given.releases)
        try_out(wheel, uv=given.uv)
        template = DIST / f"joinery-{version}.template.yaml"
        package_template(template, LAMBDA_BUILD, sam=given.sam, bucket=given.bucket, region=given.region)
        write_dated(DIST / f"joinery-{version}.member.yaml", LAMBDA_BUILD / MEMBER.name)
    except ReleaseError as error:
        sys.exit(f"make release: {error}")
    (DIST / SUMS).write_text("".join(f"{digest(path)}  {path.name}\n" for path in files_of(DIST)))
    print(*(path.relative_to(ROOT) for path in files_of(DIST)), "", *to_publish(version, given), sep="\n")


def refuse(version: str, changelog: str, status: str, elsewhere: Collection[str]) -> None:
    """Raise ``ReleaseError`` unless what is built is a commit, and that commit this version.

    ``status``: what ``git status --porcelain`` prints. ``elsewhere``: tags of other commits.
    """
    if status:
        raise ReleaseError(f"commit these first, or remove them:\n{status}")
    if not re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no heading '## {version}'")
    if f"v{version}" in elsewhere:
        raise ReleaseError(f"v{version} is another commit: write a new version into pyproject.toml (tools.version)")


def try_out(wheel: Path, *, uv: Path, more: Sequence[str] = ()) -> None:
    """Plan with the wheel as a user installs it, in an empty folder. Raises ``ReleaseError`` where that fails.

    ``more``: for ``uv tool run``.
    """
    example = ROOT / "examples" / "cluster.yaml"
    run = (str(uv.resolve()), "tool", "run", "--quiet", "--isolated", *more, "--from", str(wheel.resolve()))
    command = (*run, "joinery", "plan", "-o", "json", "-f", str(example))
    with TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        launches = json.loads(done.stdout)["launch"]
    except (ValueError, KeyError):
        launches = []
    if done.returncode or not launches:
        raise ReleaseError(f"{wheel.name} does not plan {example.name}:\n{done.stdout[:500]}{done.stderr}")


def package_template(into: Path, build: Path, *, sam: Path, bucket: str, region: str) -> None:
    """Upload the code of a build, and write the template that names it. Raises ``ReleaseError``."""
    source = build / "released.yaml"
    write_dated(source, build / TEMPLATE.name)
    done = subprocess.run(
        [
            sam.resolve(), "package", "--region", region, "--template-file", source, "--output-template-file", into,
            "--s3-bucket", bucket, "--s3-prefix", f"joinery/{project_version()}",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ReleaseError(f"sam package failed:\n{done.stderr}")


def write_dated(into: Path, template: Path) -> None:
    """Write a template that says when its commit was made: with each release the installer is called."""
    moment = datetime.fromisoformat(_git("log", "-1", "--format=%cI")).astimezone(UTC)
    into.write_text(dated(template.read_text(), moment))


def tags_elsewhere() -> Collection[str]:
    """The tags of commits other than the one that is checked out."""
    return set(_git("tag").split()) - set(_git("tag", "--points-at", "HEAD").split())


def to_publish(version: str, given: argparse.Namespace) -> list[str]:
    """What is left to do, each by somebody with the account for it."""
    return [
        "To publish:",
        f"  git tag v{version} && git push origin v{version}",
        f"  # put the files of dist below {given.releases}",
        "  uv publish dist/joinery-*.whl dist/joinery-*.tar.gz",
        f"  sam publish --template dist/joinery-{version}.template.yaml"
        f" --semantic-version {version} --region {given.region}",
        "  # krew: a pull request with dist/krew.yaml to kubernetes-sigs/krew-index, as plugins/joinery.yaml",
    ]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
