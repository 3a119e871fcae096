"""Files that nobody wrote in good faith, or with another program: one line, exit status 2, bounded memory and time."""

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from joinery_cli.output.visible import in_json, visible
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

POD = json.dumps(pod_document())
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)
#: As much as a plan of this size may take, and far less than the files stand for.
_MOST_MEMORY = 2**31


def _refused(run: Run, *arguments: str) -> str:
    outcome = run("plan", "--now", NOW, *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    (line,) = outcome.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (BOMB, "its aliases stand for more than 32 MiB"),
        ("a: &a [*a]", "1: not YAML that is read here: the alias *a is inside of itself"),
        ("a: " + "[" * 500 + "]" * 500, "nested more than 200 deep"),
        (
            "\n".join(" " * n + "a:" for n in range(300)),
            "200: not YAML that is read here: nested more than 200 deep",
        ),
        ("- a\n" * 2_000_001, "too large to be read as YAML: write it as JSON"),
        ("---\n" * 1_900_000, "more than 200,000 documents: write it as JSON"),
        ("---\r\n" * 1_000_000, "more than 200,000 documents: write it as JSON"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested too deep"),
        ("kind: Pod\nkind: Node", "2: not YAML: the key 'kind' is there twice"),
        ("kind: !!python/object:os.system {}", "not YAML: could not determine a constructor"),
        (
            POD.replace('"containers"', '"nodeName": "a", "nodeName": "b", "containers"'),
            "Pod web: the key 'nodeName' is there twice",
        ),
        ('{"kind": "List", "items": [], "items": []}', "the key 'items' is there twice"),
        (CLUSTER.replace("role: nodes", "role: a\n  role: nodes"), "the key 'role' is there twice"),
        (POD.replace("{", '{"weight": 1e999, ', 1), "Pod web: a number without bounds"),
        (POD.replace("{", '{"weight": ' + "9" * 5000 + ", ", 1), "Pod web: a number without bounds"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {priority: .inf, containers: [{name: a}]}", "Pod a: spec.priority: "),
        (
            f"kind: Pod\nmetadata: {{name: a}}\nspec: {{priority: {'9' * 5000}, containers: [{{name: a}}]}}",
            "Pod a: spec.",
        ),
    ],
    ids=range(17),
)
def test_what_no_object_needs_is_refused(run: Run, write: Write, content: str, problem: str) -> None:
    """Aliases of aliases, depth, size, keys given twice."""
    assert problem in _refused(run, "-f", write("objects", content))


def test_a_name_of_a_megabyte_does_not_fill_the_screen(run: Run, write: Write) -> None:
    """What is wrong with it is said in one line of a few hundred words at most, and so is what is merely odd."""
    assert len(_refused(run, "-f", write("p.json", pod_document("a" * 2**20)))) < 2100
    ignored = run("plan", "--now", NOW, "-f", write("o.json", {"apiVersion": "v1", "kind": "K" * 2**20}))
    assert (ignored.status, max(map(len, ignored.err.splitlines())) < 2100) == (0, True)


def test_depth_does_not_take_the_parsers_stack(tmp_path: Path) -> None:
    """A hundred thousand brackets end the process where YAML is composed at once: this needs a process of its own."""
    path = tmp_path / "deep.yaml"
    path.write_text("a: " + "[" * 100_000)
    done = _limited("plan", "-f", str(path))
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr[-300:]


@pytest.mark.parametrize("character", [b"\0", b" "])
def test_a_gzip_bomb_takes_no_memory(tmp_path: Path, character: bytes) -> None:
    """More than half a gigabyte in a few megabytes."""
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(600):
            file.write(character * 2**20)
    done = _limited("plan", "-f", str(path))
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr[-300:]


def _limited(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))

    command = [str(Path(sys.executable).with_name("joinery")), *arguments]
    return subprocess.run(command, capture_output=True, check=False, preexec_fn=limit)  # noqa: PLW1509


def test_aliases_and_merges_of_good_faith_are_read(run: Run, cluster: str, write: Write) -> None:
    """As people use them: one spec for several pods."""
    text = (
        "kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec: &spec\n"
        "    containers: [{name: c, resources: {requests: {cpu: 1}}}]\n"
        "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n  spec:\n    <<: *spec\n    priority: 5\n"
    )
    document = run(
        "plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE), "-f", cluster, "-f", write("p.yaml", text)
    ).document
    assert sorted(pod for launch in document["launch"] for pod in launch["pods"]) == ["default/a", "default/b"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(
    "text", [POD, "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a}]}"]
)
def test_a_byte_order_mark_tells_the_encoding(run: Run, write: Write, tmp_path: Path, encoding: str, text: str) -> None:
    """PowerShell writes UTF-16 into ``> objects.json``."""
    path = tmp_path / "objects"
    path.write_bytes(text.encode(encoding))
    outcome = run("plan", "--now", NOW, "-o", "json", "-f", str(path))
    assert [one["pod"] for one in outcome.document["unschedulable"]] == ["default/web"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ('# café\nkind: Pod\n# é "'.encode("latin-1"), "byte 0xe9 in line 1 is not UTF-8; save it as UTF-8"),
        (POD.encode("utf-16-le"), "a NUL byte (UTF-16 without a byte order mark? save it as UTF-8)"),
        (b"\x7fELF\2\1\1\0\0\0", "neither text nor gzip: a NUL byte"),
        (gzip.compress(POD.encode(), mtime=0)[:-9], "not a whole gzip file: it ends too early"),
        (b"\x1f\x8b\x08\x00rubbish", "not a whole gzip file: "),
    ],
    ids=["latin-1", "utf-16 without a mark", "a program", "half a gzip file", "no gzip file"],
)
def test_other_encodings_are_named(run: Run, tmp_path: Path, data: bytes, problem: str) -> None:
    """And what is no text at all."""
    path = tmp_path / "objects.json"
    path.write_bytes(data)
    line = _refused(run, "-f", str(path))
    assert line.startswith(f"joinery: {path}: ")
    assert problem in line


def test_a_device_without_an_end_is_left_at_once(run: Run) -> None:
    """It is no text from its first byte."""
    assert _refused(run, "-f", "/dev/zero") == "joinery: /dev/zero: neither text nor gzip: a NUL byte"


def test_gzip_files_may_follow_one_another(run: Run, tmp_path: Path) -> None:
    """As ``cat a.gz b.gz`` makes them, padded or not."""
    path = tmp_path / "two.gz"
    other = json.dumps(pod_document("other"))
    path.write_bytes(gzip.compress(POD.encode()) + gzip.compress(other.encode()) + b"\0" * 512)
    document = run("plan", "--now", NOW, "-o", "json", "-f", str(path)).document
    assert [one["pod"] for one in document["unschedulable"]] == ["default/other", "default/web"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seed", "-1"),
        ("--seed", "x"),
        ("--time-limit", "nan"),
        ("--time-limit", "inf"),
        ("--time-limit", "-1"),
        ("--now", "0001-01-01T00:00:00+23:00"),
        ("--now", "9999-12-31T23:59:59-12:00"),
        ("--nope",),
        ("-o", "pdf"),
        ("-f",),
        ("-f", "\0"),
        ("-f", "a" * 5000),
        ("--region", "nowhere"),
        ("--catalog", "/dev/zero"),
        ("--catalog", "\0"),
    ],
)
def test_bad_arguments_are_one_line(run: Run, cluster: str, arguments: tuple[str, ...]) -> None:
    """No box, no traceback."""
    assert _refused(run, "-f", cluster, *arguments).startswith("joinery: ")


@pytest.mark.parametrize("price", ["-1", "1e300"])
def test_a_price_that_is_none_is_refused(run: Run, cluster: str, write: Write, price: str) -> None:
    """A node that pays for itself would be bought for ever."""
    offering = f'{{"instanceType": "a", "zone": "b", "capacityType": "spot", "price": {price}}}'
    path = write("catalogue.json", f'{{"kind": "Catalog", "region": "r", "offerings": [{offering}]}}')
    assert "not a catalogue: Expected `float`" in _refused(run, "-f", cluster, "--catalog", path)


def test_escapes_are_shown_and_not_sent(run: Run, cluster: str, write: Write) -> None:
    """In errors, warnings, the table, the page and the JSON."""
    evil = "\x1b[2Jgone\u009b\u202e"
    line = _refused(run, "-f", write("name.json", {**pod_document(), "metadata": {"name": evil}}))
    files = write("pod.json", pod_document(nodeSelector={"team": evil}, **{f"odd{evil}field": "1"}))
    kind = write("kind.json", {"apiVersion": "a.b/v1", "kind": f"Evil{evil}", "metadata": {"name": "a"}})
    for form in ("table", "json", "html"):
        outcome = run("plan", "--now", NOW, "-f", cluster, "-f", files, "-f", kind, "-o", form)
        assert outcome.status == 0
        assert not {"\x1b", "\u009b", "\u202e"} & {*outcome.out, *outcome.err, *line}
        assert "gone" in outcome.out
        assert "Evil\\x1b[2Jgone\\x9b\\u202e" in outcome.err


def test_what_is_shown_means_the_same() -> None:
    """Plain text stays what it is, and JSON stays the same document."""
    assert visible("plain é 漢") == "plain é 漢"
    assert visible("a\nb\x1b\u2028") == "a\\nb\\x1b\\u2028"
    odd: Any = {"a\u009b": "\u202e\u007f"}
    assert json.loads(in_json(json.dumps(odd, ensure_ascii=False, indent=2))) == odd


@pytest.mark.parametrize("arguments", [("plan", "-f", "-"), ("catalog", "-o", "json")])
def test_a_reader_who_leaves_is_no_error(arguments: tuple[str, ...]) -> None:
    """``joinery catalog | head -1``: no traceback, and not the status of bad input."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(Path(sys.executable).with_name("joinery")), *arguments, "--catalog", str(SAMPLE)]
    done = subprocess.run(command, input=POD.encode(), stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, b"Traceback" in done.stderr, b"Exception ignored" in done.stderr) == (1, False, False)


def test_a_full_disk_is_one_line() -> None:
    """What was printed is not all there, and the exit status says so."""
    command = [str(Path(sys.executable).with_name("joinery")), "catalog", "--catalog", str(SAMPLE)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"joinery: [Errno 28] No space left on device\n")
