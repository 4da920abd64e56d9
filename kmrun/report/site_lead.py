"""The first sentence of the site's page about a model: where it fits, what is fastest, what is cheapest."""

from collections.abc import Sequence

from kmrun.core.llm_answer import Answer


def lead(answers: Sequence[Answer]) -> str:
    """Return what to know first of the answers of several cards; empty without any.

    The fastest and the cheapest are by their ceilings, of the cards that are known to hold the model.
    """
    fitting = [item for item in answers if item.fit.fits]
    if not answers:
        return ""
    if not fitting:
        return (
            "It fits on no card that is chosen."
            if len(answers) > 1
            else f"It does not fit on {answers[0].card.id}."
        )
    if len(answers) == 1:
        return f"It fits on {answers[0].card.id}."
    said = f"It fits on {'every card' if len(fitting) == len(answers) else f'{len(fitting)} of {len(answers)} cards'}."
    fast = [item for item in fitting if item.tok_per_s is not None]
    if fast:
        said += f" Highest ceiling: {max(fast, key=lambda item: item.tok_per_s or 0.0).card.id}."
    priced = [item for item in fast if item.usd_per_million is not None]
    if len(priced) > 1:
        said += f" Cheapest tokens: {min(priced, key=lambda item: item.usd_per_million or 0.0).card.id}."
    return said
