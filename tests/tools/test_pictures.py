"""The pictures of docs/packing.md: drawn from real packings, and fit to be shown anywhere."""

from pathlib import Path
from xml.etree import ElementTree

from tools.pictures import main

SVG = "{http://www.w3.org/2000/svg}"


def _shown(file: Path) -> ElementTree.Element:
    return ElementTree.fromstring(file.read_text())


def _price(picture: ElementTree.Element) -> float:
    return float(picture.findtext(f"{SVG}title", "").partition("$")[2].partition("/h")[0])


def test_a_packing_is_drawn_before_and_after(tmp_path: Path) -> None:
    """Both are whole SVG documents of rectangles and text; what Joinery buys costs less, and says its bound."""
    main(["--into", str(tmp_path)])
    before, after = (_shown(tmp_path / f"packing-{name}.svg") for name in ("before", "after"))
    assert _price(after) < _price(before)
    assert "no plan costs less than $" in after.findtext(f"{SVG}title", "")
    for picture in (before, after):
        assert {element.tag.removeprefix(SVG) for element in picture.iter()} == {
            "svg",
            "title",
            "style",
            "text",
            "rect",
        }
