"""The entries of a mapping as written become its keys: merges expanded, doubles and slips reported."""

from kmrun.core.case import Path
from kmrun.source import yaml_flow, yaml_scalars
from kmrun.source.document import Node
from kmrun.source.yaml_ledger import Ledger

Entries = dict[str, tuple[Node, Node]]
NO_KEY = "\0"
"""What the name of a key starts with that was reported and stands for nothing."""


def joined(entries: list[tuple[Node, Node]], path: Path, ledger: Ledger) -> Entries:
    """Return a mapping's entries by key, in order.

    A merge key is expanded where it stands; keys that are written win over merged ones.
    """
    result: Entries = {}
    written: set[str] = set()
    merged = doubled = False
    for key, node in entries:
        if node.value is None and ":" in key.value and yaml_flow.has_no_value(key, node):
            key, node = _spaced(key, path, ledger)
        name: str = key.value
        if name == "<<" and not key.style:
            if merged:
                hint = "write <<: [*a, *b]"
                ledger.mistake(key.span, path, "K114", "a second '<<' in one mapping", hint)
            merged = True
            _merge(node, result, path, ledger)
        elif name in written:
            if not doubled:  # more of them: a list item lost its dash, which is one mistake
                line = result[name][0].span.line
                message, hint = f"the key '{name}' stands twice", f"first on line {line}"
                ledger.mistake(key.span, (*path, name), "K102", message, hint)
            doubled = True
        elif not name.startswith(NO_KEY):
            written.add(name)
            result[name] = (key, node)
    return result


def _spaced(key: Node, path: Path, ledger: Ledger) -> tuple[Node, Node]:
    """Report `{m:512}`, which is a key without a value, and return the entry that was meant."""
    name, _, text = key.value.partition(":")
    ledger.mistake(key.span, (*path, name), "K101", "no space after the ':'", f"write '{name}: {text}'")
    value = yaml_scalars.resolve(text)
    meant = value.stand_in if isinstance(value, yaml_scalars.Refusal) else value
    return Node(key.source, key.span, name), Node(key.source, key.span, meant)


def _merge(node: Node, result: Entries, path: Path, ledger: Ledger) -> None:
    """Add what a merge key brings; each entry looked at is paid for, taken or not."""
    sources = node.children if isinstance(node.children, list) else [node]
    for source in sources:
        if not isinstance(source.children, dict):
            message = "'<<' takes a mapping or a list of mappings"
            ledger.mistake(node.span, path, "K114", message, "write <<: *anchor")
            return
        for name, entry in source.children.items():
            ledger.spend(1 if name in result else 1 + entry[1].size, node.span)
            result.setdefault(name, entry)
