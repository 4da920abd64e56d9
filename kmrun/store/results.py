"""Result documents on disk: written whole or not at all, read only when this kmrun understands them."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kmrun.core.plain import from_plain, to_plain
from kmrun.core.result import VERSION, CaseResult, Result
from kmrun.errors import InvalidInput
from kmrun.schema import result as schema
from kmrun.store.targets import TargetFile

_NUMBERS = re.compile(r"\[\n\s+([-+.\deE]+(?:,\s+[-+.\deE]+)*)\n\s+\]")

_SURROGATES = re.compile("[\ud800-\udfff]")


class ResultFile:
    """A `--save` target: found writable before anything is measured, replaced as a whole after every case."""

    def __init__(self, path: Path, several: bool = False) -> None:
        """Prepare to write `path`; `several` says that it will hold an array of documents.

        Raises:
            UsageError: the file cannot be written there, or holds something else than results.
        """
        self.several = several
        self._texts = CaseTexts()
        self._target = TargetFile(path, "--save", "result of kmrun", _holds_results)

    def write(self, results: Sequence[Result]) -> None:
        """Replace the file's content; a reader sees the old document or the new one, never a part.

        Raises:
            UsageError: the file can no longer be written.
        """
        self._target.replace(render(results, several=self.several, texts=self._texts))


def _holds_results(content: bytes) -> bool:
    """Say whether a file holds results, of whatever format version."""
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        return False
    documents = plain if isinstance(plain, list) else [plain]
    return all(isinstance(document, dict) and "kmrun_result" in document for document in documents)


class CaseTexts:
    """The JSON text of cases, made once each: a file is written anew after every case."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[CaseResult, str]] = {}

    def of(self, case: CaseResult) -> str:
        """Return the text of a case."""
        known = self._known.get(id(case))
        if known is None:
            # The case is kept beside its text, so that no other object can come to have its id.
            known = self._known[id(case)] = (case, _text(to_plain(case)))
        return known[1]


def render(results: Sequence[Result], *, several: bool = False, texts: CaseTexts | None = None) -> str:
    """Return the JSON text: one document, or an array of them; lists of numbers stand on one line."""
    documents = [_document(result, texts or CaseTexts()) for result in results]
    if not several:
        return documents[0] + "\n"
    return "[\n" + ",\n".join(documents) + "\n]\n" if documents else "[]\n"


def _document(result: Result, texts: CaseTexts) -> str:
    head = _text(to_plain(replace(result, cases=())))
    if not result.cases:
        return head
    cases = ",\n".join(texts.of(case) for case in result.cases)
    empty = '"cases": []\n}'
    if not head.endswith(empty):
        raise ValueError("the cases must be the document's last key")
    return f'{head.removesuffix(empty)}"cases": [\n{cases}\n]\n}}'


def _text(plain: Any) -> str:
    # Half a surrogate pair, from a file name or a message that is no Unicode, is no text: spelled out instead.
    text = _SURROGATES.sub(
        lambda match: f"\\\\u{ord(match[0]):04x}",
        json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False),
    )
    return _NUMBERS.sub(lambda match: "[" + " ".join(match[1].split()) + "]", text)


def read(path: Path) -> list[Result]:
    """Return the documents of a file, one or several.

    Raises:
        InvalidInput: the file cannot be read, is no result document, or was written by a newer kmrun.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path}: {(error.strerror or str(error)).lower()}") from error
    return read_content(content, str(path))


def read_content(content: bytes, name: str) -> list[Result]:
    """Return the documents that are the content of a file or stream of that name.

    Raises:
        InvalidInput: it is no result document, or was written by a newer kmrun.
    """
    try:
        plain = json.loads(content.decode("utf-8"), parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name}: not JSON: {error}", "a result file is what --save writes") from error
    documents = plain if isinstance(plain, list) else [plain]
    return [parse(document, name) for document in documents]


def no_constant(word: str) -> Any:
    """Refuse `NaN` and `Infinity`, which Python's reader knows and JSON does not.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{word} is no value")


def parse(plain: Any, name: str) -> Result:
    """Return the document that plain JSON values are.

    Raises:
        InvalidInput: it is no result document, or one of a newer format.
    """
    version = plain.get("kmrun_result") if isinstance(plain, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidInput(f"{name}: no result document", "a result file is what --save writes")
    if not 1 <= version <= VERSION:
        hint = "a newer kmrun wrote it: upgrade this one" if version > VERSION else "there is no such format"
        raise InvalidInput(f"{name}: result format {version}, this kmrun reads {VERSION}", hint)
    try:
        schema.Result.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{name}: damaged result document: {where}: {first['msg'].lower()}") from error
    return from_plain(Result, plain)
