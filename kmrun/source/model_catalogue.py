"""The catalogue of language models and weight formats: finds them by what people call them.

Reads the compiled form of models.yaml and quants.yaml, checked against the YAML; where they differ (an edited
checkout), the YAML is read instead. From the compiled form neither yaml nor pydantic is imported.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kmrun import resources
from kmrun.core.llm_model import Attention, Experts, FeedForward, Model, Recurrent
from kmrun.core.llm_quant import Quant
from kmrun.errors import UnknownName, UsageError

COMPILED = "language_models.json"
_PARTS: Mapping[str, type] = {"attention": Attention, "recurrent": Recurrent, "ffn": FeedForward}


class ModelCatalogue:
    """Models and formats by id. Entries are compiled ones (JSON text) until they are asked for."""

    def __init__(
        self,
        models: Mapping[str, Model | str],
        quants: Mapping[str, Quant | str],
        model_names: Mapping[str, str],
        quant_names: Mapping[str, str],
    ) -> None:
        """Take the entries, and every spelling with the id that it stands for."""
        self._models = dict(models)
        self._quants = dict(quants)
        self._model_names = model_names
        self._quant_names = quant_names

    @property
    def model_ids(self) -> tuple[str, ...]:
        """All models."""
        return tuple(self._models)

    @property
    def quant_ids(self) -> tuple[str, ...]:
        """All formats."""
        return tuple(self._quants)

    def model(self, model_id: str) -> Model:
        """Return the model of an exact id. Raises KeyError for an unknown one."""
        entry = self._models[model_id]
        return model_from(model_id, json.loads(entry)) if isinstance(entry, str) else entry

    def quant(self, quant_id: str) -> Quant:
        """Return the format of an exact id. Raises KeyError for an unknown one."""
        entry = self._quants[quant_id]
        return quant_from(quant_id, json.loads(entry)) if isinstance(entry, str) else entry

    def find_model(self, name: str) -> Model:
        """Return the model that a person means: id, alias, name on a hub; or the only one that begins so.

        Raises:
            UsageError: several models begin with it; the hint lists them.
            UnknownName: none does; the hint names near ones.
        """
        spelling = compact(bare(name))
        if spelling in self._model_names:
            return self.model(self._model_names[spelling])
        begins = _like(self._model_names.values(), bare(name))
        if len(begins) == 1:
            return self.model(begins[0])
        if begins:
            raise UsageError(f"'{name}' names {len(begins)} models", f"say which: {_listed(begins)}")
        near = _near(spelling, self._model_names)
        hint = (
            f"did you mean {' or '.join(near)}?" if near else "a size (70b), a name (llama-3.1-8b), or a file"
        )
        raise UnknownName(f"unknown model '{name}'", hint)

    def find_quant(self, name: str) -> Quant:
        """Return the format that a person means.

        Raises:
            UnknownName: there is none; the hint names near ones.
        """
        spelling = compact(name)
        if spelling in self._quant_names:
            return self.quant(self._quant_names[spelling])
        near = _near(spelling, self._quant_names)
        known = ", ".join(self._quants)
        hint = f"did you mean {' or '.join(near)}?" if near else f"one of {known}; or --bytes-per-param"
        raise UnknownName(f"unknown format '{name}'", hint)


def load_models() -> ModelCatalogue:
    """Return the shipped models and formats."""
    path = resources.folder("cards") / COMPILED
    if path.exists():
        head, names, quant_names, *rows = path.read_text(encoding="utf-8").splitlines()
        if head == _head():
            middle = rows.index('}, "quants": {')
            models = dict(_row(row) for row in rows[1:middle])
            quants = dict(_row(row) for row in rows[middle + 1 : -1])
            return ModelCatalogue(models, quants, _names(names), _names(quant_names))
    from kmrun.source.model_files import read_models, read_quants

    models_yaml, quants_yaml = sources()
    every, formats = read_models(models_yaml), read_quants(quants_yaml)
    return ModelCatalogue(every, formats, spellings(every.values()), spellings(formats.values()))


def sources() -> tuple[Path, Path]:
    """Return the paths of models.yaml and quants.yaml."""
    folder = resources.folder("cards")
    return folder / "models.yaml", folder / "quants.yaml"


def compiled(models: Iterable[Model], quants: Iterable[Quant]) -> str:
    """Return the text of the compiled form: JSON of which every line can be read alone."""
    every, formats = list(models), list(quants)
    lines = ",\n".join(f"{json.dumps(item.id)}: {json.dumps(as_entry(item))}" for item in every)
    others = ",\n".join(f"{json.dumps(item.id)}: {json.dumps(as_entry(item))}" for item in formats)
    return (
        f'{_head()}\n"model_names": {json.dumps(spellings(every))},\n"quant_names": '
        f'{json.dumps(spellings(formats))},\n"models": {{\n{lines}\n}}, "quants": {{\n{others}\n}}}}\n'
    )


def as_entry(item: Any) -> dict[str, Any]:
    """Return a named tuple as JSON takes it, without its id, its prose and what has its default."""
    entry: dict[str, Any] = {}
    for name, value in item._asdict().items():
        if name in ("id", "source", "note", "title"):
            continue
        if name in item._field_defaults and value == item._field_defaults[name]:
            continue
        entry[name] = _plain(value)
    return entry


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return as_entry(value)
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def model_from(model_id: str, entry: Mapping[str, Any]) -> Model:
    """Return the model of a compiled entry."""
    values: dict[str, Any] = dict(entry)
    for name, part in _PARTS.items():
        if name in values:
            values[name] = tuple(part(**item) for item in values[name])
    if "experts" in values:
        values["experts"] = Experts(**values["experts"])
    values["aliases"] = tuple(values.get("aliases", ()))
    return Model(id=model_id, **values)


def quant_from(quant_id: str, entry: Mapping[str, Any]) -> Quant:
    """Return the format of a compiled entry."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Quant(id=quant_id, **values)


def spellings(items: Iterable[Model | Quant]) -> dict[str, str]:
    """Return every spelling, without dashes and case, with the id that it stands for."""
    every = list(items)
    names = {compact(item.id): item.id for item in every}
    for item in every:
        for alias in item.aliases:
            names.setdefault(compact(alias), item.id)
    return names


def compact(name: str) -> str:
    """Return a name as it is compared: `Llama 3.1-8B` is `llama3.18b`."""
    return "".join(char for char in name.lower() if char.isalnum() or char == ".")


def bare(name: str) -> str:
    """Return a name without its owner on a hub and without what only says how it was tuned or stored."""
    text = name.rpartition("/")[2].lower()
    for old, new in ((":", "-"), ("meta-", ""), ("-instruct", ""), ("-chat", ""), ("-it", ""), ("-gguf", "")):
        text = text.replace(old, new)
    return text


def _head() -> str:
    contents = (path.read_bytes().replace(b"\r\n", b"\n") for path in sources())
    fingerprint = "-".join(f"{zlib.crc32(content):08x}" for content in contents)
    return f'{{"generated_from": "{fingerprint}",'


def _row(line: str) -> tuple[str, str]:
    key, _, entry = line.rstrip(",").partition(": ")
    return key.strip('"'), entry


def _names(line: str) -> dict[str, str]:
    names: dict[str, str] = json.loads(line.partition(": ")[2].rstrip(","))
    return names


def _like(ids: Iterable[str], name: str) -> list[str]:
    """Return the ids that begin with the name, not ending within a number, or else have all its words."""
    known, spelling = list(dict.fromkeys(ids)), compact(name)
    begins = [model_id for model_id in known if spelling and _begins(model_id, spelling)]
    words = set(name.replace("_", "-").replace(" ", "-").split("-")) - {""}
    return begins or [model_id for model_id in known if words and words <= set(model_id.split("-"))]


def _begins(model_id: str, spelling: str) -> bool:
    for end in range(1, len(model_id)):
        if compact(model_id[:end]) == spelling:
            # 3.1 begins 3.1-8b, but 3 does not begin 32b.
            return not (model_id[end - 1].isdigit() and (model_id[end].isdigit() or model_id[end] == "."))
    return False


def _near(spelling: str, names: Mapping[str, str]) -> list[str]:
    import difflib

    matches = difflib.get_close_matches(spelling, names, n=4, cutoff=0.6)
    return list(dict.fromkeys(names[match] for match in matches))[:3]


def _listed(ids: list[str], most: int = 8) -> str:
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more
