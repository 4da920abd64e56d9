"""The table of `kmrun llm`: what fits, how fast at best, and what was seen, 100 columns wide."""

import textwrap
from collections.abc import Callable, Sequence

from kmrun.core.llm_answer import Answer, Question
from kmrun.core.llm_cache import cache_bytes, state_bytes
from kmrun.core.llm_ceiling import Decode
from kmrun.core.llm_fit import usable_share
from kmrun.core.llm_model import parameters
from kmrun.report.columns import MISSING, WIDTH, Column, figures, render
from kmrun.report.fitting import facts_wrapped
from kmrun.source.llm_subject import Subject

CLOSING = (
    "Ceilings, not predictions: no published result lands above them. `seen` is the band of published results that "
    "read as much for a token."
)


def text(
    subject: Subject,
    question: Question,
    answers: Sequence[Answer],
    assumptions: Sequence[str],
    per_watt: bool = False,
) -> str:
    """Return the answer as people read it: the model, the table, what is missing where, every assumption."""
    lines = [*facts_wrapped(title(subject, question), WIDTH), ""]
    for table in _tables(*columns(question, answers, per_watt)):
        lines += [*render(table), ""]
    lines.pop()
    missing = lacking(answers, question)
    if missing:
        lines += ["", *missing]
    lines += [
        "",
        *textwrap.wrap(CLOSING, WIDTH),
        *textwrap.wrap(assumed(answers, assumptions, per_watt), WIDTH),
    ]
    return "\n".join(lines) + "\n"


def lacking(answers: Sequence[Answer], question: Question) -> list[str]:
    """Return a sentence for every card that does not hold the model: what it is short of, and what would fit."""
    return [line for item in answers for line in _missing(item, question)]


def assumed(answers: Sequence[Answer], assumptions: Sequence[str], per_watt: bool = False) -> str:
    """Return everything that was assumed, in one sentence."""
    said = [*assumptions, *_roofs(answers)]
    if per_watt:
        said.append("tokens per joule are the ceiling at TDP: cards under a lower limit do better")
    return f"Assumed: {'; '.join(said)}."


def title(subject: Subject, question: Question) -> str:
    """Return the model in one line: parameters, format and bytes, cache at the context, batch."""
    load, counts = question.load, parameters(subject.model)
    parts = [f"{subject.model.id}: {amount(counts.total)} parameters"]
    if counts.routed or counts.read_per_token < 0.98 * counts.total:
        parts[0] += f", {amount(counts.read_per_token)} read for a token"
    parts.append(f"{subject.quant.id}: {gigabytes(subject.weights.file)} of weights")
    cache = cache_bytes(subject.model, question.context, load.kv_bits)
    state = state_bytes(subject.model)
    beside = f" + {gigabytes(state)} of state" if state else ""
    parts.append(f"{short(question.context)} context: {gigabytes(cache)} of cache{beside} a sequence")
    parts.append(f"batch {load.batch}")
    if load.draft:
        parts.append(f"{load.draft} drafted")
    return " · ".join(parts)


def amount(number: float) -> str:
    """Return a number of parameters: `8.03 B`, `135 M`."""
    factor, unit = (1e9, "B") if number >= 1e9 else (1e6, "M")
    scaled = number / factor
    return f"{scaled:.0f} {unit}" if scaled >= 100 else f"{scaled:.3g} {unit}"


def gigabytes(size: float) -> str:
    """Return bytes in GB: `42.3 GB`, `0.54 GB`, `0.003 GB`."""
    scaled = size / 1e9
    if scaled >= 1000:
        return f"{scaled:.0f} GB"
    return f"{scaled:.1f} GB" if scaled >= 10 else f"{scaled:.2f} GB" if scaled >= 0.1 else f"{scaled:.2g} GB"


def short(tokens: int) -> str:
    """Return a context, rounded down: `128k`, `3.5k`, `512`."""
    if tokens < 1024:
        return str(tokens)
    if tokens >= 10 * 1024 or tokens % 1024 == 0:
        return f"{tokens // 1024}k"
    return f"{tokens * 10 // 1024 / 10:.1f}k"


def _tables(main: list[Column], layouts: list[Column], costs: list[Column]) -> list[list[Column]]:
    """Return one table, or where it would be wider than the page a second one that begins with the cards too."""
    place = next(index for index, column in enumerate(main) if column.head == "seen")
    wide = [*main[:place], *layouts, *main[place:]]
    if _fitting([*wide, *costs]):
        return [[*wide, *costs]]
    if _fitting(wide):
        return [wide, [main[0], *costs]]
    return [main, [main[0], *layouts, *costs]]


def _fitting(columns: Sequence[Column]) -> bool:
    return sum(column.width for column in columns) + len(columns) - 1 <= WIDTH


def columns(
    question: Question, answers: Sequence[Answer], per_watt: bool
) -> tuple[list[Column], list[Column], list[Column]]:
    """Return the columns of every table, those about streams and layouts, and those about money and energy."""
    batch, cards = question.load.batch, question.load.cards

    def numbers(value: Callable[[Answer], float | None], factor: float = 1.0) -> list[str]:
        return figures([None if (found := value(item)) is None else found / factor for item in answers])

    count = "" if cards == 1 else f"{cards}x "
    main = [
        Column("card", [count + item.card.id for item in answers], left=True),
        Column("needs", numbers(lambda item: item.fit.needed, 1e9), "GB"),
        Column("of", numbers(lambda item: item.fit.usable, 1e9), "GB"),
        Column("fits", [_fits(item) for item in answers]),
        Column("longest", [_longest(item) for item in answers], "ctx"),
        Column("decode", numbers(lambda item: item.tok_per_s), "tok/s"),
        Column("seen", [_seen(item) for item in answers], "tok/s"),
        Column("prefill", numbers(lambda item: item.prefill_tok_per_s), "tok/s"),
        Column("bound", [item.decode.times.bound if item.decode else MISSING for item in answers]),
    ]
    layouts: list[Column] = []
    costs: list[Column] = []
    if batch > 1:
        layouts.append(Column("each", numbers(lambda item: _over(item.tok_per_s, batch)), "tok/s"))
    if cards > 1:
        layouts.append(Column("tensor", numbers(lambda item: _speed(item.tensor)), "tok/s"))
        layouts.append(Column("layers", numbers(lambda item: _speed(item.layers)), "tok/s"))
    if question.prices:
        costs.append(Column("$/h", [_money(item.usd_per_h) for item in answers]))
        costs.append(Column("tok/s", numbers(lambda item: item.tok_per_s_per_usd), "per $"))
        costs.append(Column("$/Mtok", [_money(item.usd_per_million) for item in answers], "from"))
    if per_watt:
        costs.append(Column("tok/J", numbers(lambda item: item.tok_per_joule), "TDP"))
    return main, layouts, costs


def _fits(item: Answer) -> str:
    return "?" if item.fit.fits is None else "yes" if item.fit.fits else "no"


def _longest(item: Answer) -> str:
    longest = item.fit.max_context
    return MISSING if not longest else short(longest)


def _seen(item: Answer) -> str:
    if item.seen is None:
        return MISSING
    low, high = (f"{value:.0f}" if value >= 10 else f"{value:.1f}" for value in item.seen)
    return f"{low}-{high}"


def _missing(item: Answer, question: Question) -> list[str]:
    found = item.fit
    if found.fits is None:
        least = gigabytes(found.needed / usable_share(item.card) / question.load.cards)
        return [f"{item.card.id}: sold with several sizes of memory; this needs one of at least {least}."]
    if found.fits or found.usable is None:
        return []
    lacking = gigabytes(found.needed - found.usable)
    if found.max_context:
        return [f"{item.card.id}: {lacking} short; a context of {short(found.max_context)} would fit."]
    weights = question.load.weights.file
    also = "the weights alone are too large" if weights > found.usable else "no context would fit"
    return [f"{item.card.id}: {lacking} short; {also}."]


def _roofs(answers: Sequence[Answer]) -> list[str]:
    said = []
    rooms = sorted({item.roof.head_room for item in answers if item.roof and item.roof.why})
    if rooms:
        percents = " to ".join(dict.fromkeys(f"{(room - 1) * 100:.0f}" for room in (rooms[0], rooms[-1])))
        said.append(
            f"arithmetic has {percents} % of head-room, for clocks above the sheet's; memory has none"
        )
    used = sorted({item.roof.arithmetic for item in answers if item.roof})
    if used:
        said.insert(
            0, f"weights are multiplied in {' or '.join(used)}, the fastest that a stack could use there"
        )
    bounded = [item.card.id for item in answers if item.roof and item.roof.bounded]
    if bounded:
        said.append(f"a faster figure stands for the unpublished one of {', '.join(bounded)}")
    unknown = [item.card.id for item in answers if item.roof is None]
    if unknown:
        said.append(f"no arithmetic figure is published of {', '.join(unknown)}")
    return said


def _speed(ceiling: Decode | None) -> float | None:
    return None if ceiling is None else ceiling.tok_per_s


def _over(value: float | None, divisor: float) -> float | None:
    return None if value is None else value / divisor


def _money(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"
