"""The catalogue of diagnostic codes: what each means, with an example that is wrong and one that is right."""

import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kmrun.source.yaml_loader import load_file

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Code:
    """A code and its explanation; `wrong` and `right` are excerpts of a suite, or empty."""

    code: str
    title: str
    text: str
    wrong: str = ""
    right: str = ""

    def page(self) -> str:
        """Return what `kmrun explain` prints, 100 columns wide."""
        text = "\n\n".join(
            textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)
            for paragraph in self.text.strip().split("\n\n")
        )
        parts = [f"{self.code}: {self.title}\n", f"{text}\n"]
        parts += [
            f"{label}:\n\n" + "".join(f"    {line}\n" for line in example.strip("\n").split("\n"))
            for label, example in (("Wrong", self.wrong), ("Right", self.right))
            if example
        ]
        return "\n".join(parts)


@cache
def catalogue() -> dict[str, Code]:
    """Return all codes in ascending order."""
    loaded = load_file(Path(__file__).with_name("codes.yaml"), "codes.yaml")
    return {code: Code(code, **entry) for code, entry in sorted(loaded.document.value.items())}
