"""SVG as text: every attribute and every text escaped, numbers no longer than a picture can show."""

from html import escape

from kmrun.core.printable import printable

Attribute = str | float | None


def number(value: float) -> str:
    """Return a coordinate in pixels with at most one decimal: `12`, `12.5`."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def element(name: str, *children: str, **attributes: Attribute) -> str:
    """Return one element. Children are markup; `class_` is `class`, `_` is `-`, None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def words(content: str) -> str:
    """Return text as markup, without characters that XML forbids or that could turn its direction."""
    return escape(printable(content))


def label(content: str, x: float, y: float, **attributes: Attribute) -> str:
    """Return a text element at its baseline."""
    return element("text", words(content), x=x, y=y, **attributes)


def title(content: str) -> str:
    """Return the text, of one line or several, that a browser shows while the pointer rests on the parent."""
    return element("title", "\n".join(words(line) for line in content.split("\n")))


def picture(
    name: str, width: float, height: float, heading: str, description: str, *children: str, css: str
) -> str:
    """Return a whole inline picture with a text alternative.

    Args:
        name: unique in its page; the ids of heading and description are made from it.
        width: of the coordinates, in pixels.
        height: the same.
        heading: what it shows, in a few words.
        description: what a person who cannot see it should know.
        children: markup.
        css: class of the element.
    """
    return element(
        "svg",
        element("title", words(heading), id=f"{name}-title"),
        element("desc", words(description), id=f"{name}-desc"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_=css,
    )


def _value(value: str | float) -> str:
    return words(value) if isinstance(value, str) else number(value)
