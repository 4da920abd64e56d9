"""A page's markup taken apart: elements with their attributes and text, strictly."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}
# Elements of SVG are written without an end where they are empty: the parser reports both.


@dataclass
class Element:
    """An element; `text` is all text inside it, with that of its children."""

    name: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    children: list["Element"] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self._pieces()).split())

    def _pieces(self):
        for piece in self.own:
            yield piece if isinstance(piece, str) else "".join(piece._pieces())

    def all(self, *names: str, **attributes: str) -> list["Element"]:
        """Every element below, of those names, with those words among their attributes' (`class_="chip"`)."""
        found = []
        for child in self.children:
            fits = all(
                value in child.attributes.get(key.rstrip("_"), "").split()
                for key, value in attributes.items()
            )
            if (not names or child.name in names) and fits:
                found.append(child)
            found += child.all(*names, **attributes)
        return found

    def under(self, name: str) -> bool:
        return self.parent is not None and (self.parent.name == name or self.parent.under(name))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.at = self.root

    def handle_starttag(self, tag, attrs):
        element = Element(tag, {key: value or "" for key, value in attrs}, self.at)
        self.at.children.append(element)
        self.at.own.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.at = self.at.parent

    def handle_endtag(self, tag):
        assert self.at.name == tag, f"</{tag}> closes <{self.at.name}>"
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.own.append(data)


def parsed(page: str) -> Element:
    """The tree of a page, whose every element must be closed in order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.at is reader.root, f"<{reader.at.name}> is never closed"
    return reader.root
