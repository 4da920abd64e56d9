"""Model and format files, read and validated: the slow way in, for generating and for tests.

Everyday commands take `kmrun.source.model_catalogue`, which needs neither yaml nor pydantic.
"""

from collections.abc import Iterable
from pathlib import Path

from kmrun.core import llm_model as core
from kmrun.core.llm_quant import Quant
from kmrun.core.problem import Problem
from kmrun.schema import model as model_schema
from kmrun.schema import quant as quant_schema
from kmrun.source.document_reader import read_document, refuse


def read_models(path: Path) -> dict[str, core.Model]:
    """Return the models of a file by id.

    Raises:
        InvalidSuite: the file is wrong; carries every diagnostic.
    """
    document, places = read_document(path, model_schema.ModelFile)
    refuse(_taken("models", [(key, value.aliases) for key, value in document.models.items()]), places)
    return {key: _model(key, value) for key, value in document.models.items()}


def read_quants(path: Path) -> dict[str, Quant]:
    """Return the formats of a file by id.

    Raises:
        InvalidSuite: the file is wrong; carries every diagnostic.
    """
    document, places = read_document(path, quant_schema.QuantFile)
    refuse(_taken("quants", [(key, value.aliases) for key, value in document.quants.items()]), places)
    return {key: _quant(key, value) for key, value in document.quants.items()}


def _taken(section: str, named: Iterable[tuple[str, tuple[str, ...]]]) -> list[Problem]:
    entries = list(named)
    owners = {key: key for key, _ in entries}
    problems = []
    for key, aliases in entries:
        for index, alias in enumerate(aliases):
            owner = owners.setdefault(alias, key)
            if owner != key:
                message = f"the alias '{alias}' already names '{owner}'"
                problems.append(Problem("K504", (section, key, "aliases", index), message))
    return problems


def _model(key: str, document: model_schema.Model) -> core.Model:
    return core.Model(
        id=key,
        layers=document.layers,
        hidden=document.hidden,
        vocab=document.vocab,
        attention=tuple(map(_attention, document.attention)),
        recurrent=tuple(core.Recurrent(**group.model_dump()) for group in document.recurrent),
        ffn=tuple(core.FeedForward(**group.model_dump()) for group in document.ffn),
        experts=core.Experts(**document.experts.model_dump()) if document.experts else None,
        tied=document.tied,
        extra_params=document.extra_params,
        lookup_params=document.lookup_params,
        max_context=document.context,
        native=document.native,
        aliases=document.aliases,
        published_params=document.published.total,
        published_active=document.published.active,
        source=document.source,
        note=document.note or "",
    )


def _attention(group: model_schema.Attention) -> core.Attention:
    return core.Attention(**{name: value for name, value in group.model_dump().items() if value is not None})


def _quant(key: str, document: quant_schema.Quant) -> Quant:
    block = document.block
    bits = document.ceiling_bits or 0.0 if block is None else block.bytes * 8 / block.weights
    return Quant(
        id=key,
        ceiling_bits=bits,
        file_bits=document.file_bits or bits,
        arithmetic=document.arithmetic,
        outside_bits=document.outside_bits,
        table_bits=document.table_bits,
        aliases=document.aliases,
        mix=block is None and len(document.published_file_bits) > 0,
        title=document.title,
        source=document.source,
        note=document.note or "",
    )
