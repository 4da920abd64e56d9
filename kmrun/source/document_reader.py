"""One YAML document read into one model, with every mistake of the file reported at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from kmrun.core.problem import Problem
from kmrun.source import schema_errors
from kmrun.source.diagnostics import InvalidSuite
from kmrun.source.document import Document
from kmrun.source.suite_reader import is_echo, to_diagnostics
from kmrun.source.yaml_loader import load_file

M = TypeVar("M", bound=BaseModel)


def read_document(path: Path, model: type[M], name: str | None = None) -> tuple[M, Document]:
    """Return the file as that model, and as the document in which its places stand.

    Raises:
        InvalidSuite: the file is missing, no YAML, or not what the model says; carries every diagnostic.
    """
    loaded = load_file(path, name)
    try:
        result = model.model_validate(loaded.document.value)
    except ValidationError as error:
        found = schema_errors.problems(error, model, loaded.document.value)
        problems = [item for item in found if not is_echo(item, loaded.document)]
        raise InvalidSuite([*loaded.diagnostics, *to_diagnostics(problems, loaded.document)]) from None
    if loaded.diagnostics:
        raise InvalidSuite(loaded.diagnostics)
    return result, loaded.document


def refuse(problems: Sequence[Problem], document: Document) -> None:
    """Raise InvalidSuite for what a look at the whole document found; nothing when there is nothing."""
    if problems:
        raise InvalidSuite(to_diagnostics(problems, document))
