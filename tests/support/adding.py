"""A suite of one kernel and two cases, for tests that only look at what is made of a measurement."""

ONE, TWO = "add[n=1024]", "add[n=2048]"

_SUITE = """\
kmrun: 1
suite: adding
kernels:
  - name: add
    target: kernels.py:add
    reference: torch:add
    tags: [ci]
    matrix: {n: [1024, 2048]}
    args:
      x: {init: randn, shape: [n, n], dtype: fp32}
      y: {init: randn, like: x}
    outputs: {o: {like: x}}
"""


def adding(*clauses: str) -> str:
    """Return the suite with these clauses, each in YAML: `{max_ms: 100}`."""
    contract = "".join(f"      - {clause}\n" for clause in clauses)
    return _SUITE + (f"    contract:\n{contract}" if clauses else "")
