"""A suite that uses every key of the format: where mutations start, and what the schemas must accept."""

EVERY_KEY = """\
kmrun: 1
suite: every-key
x-shapes: &shape [m, k]
defaults:
  seed: 7
  timing: {l2: cold, clock: boost, min_time_ms: 100, max_time_ms: 3000, rel_ci: 0.01}
  timeout_s: {first_call: 300, case: 60}
  unlisted_device: report
kernels:
  - name: gemm
    target: torch:matmul
    reference: {target: kernels/gemm.py:reference, compute: fp64, chunk: m, args: [a, b]}
    versus:
      eager: torch:matmul
      compiled: {target: torch:mm, compile: {mode: max-autotune, dynamic: false}, graph: true, env: {A: "1"}}
      plain: {target: torch:mm, compile: false}
    tags: [ci, gemm]
    matrix:
      dtype: [fp32, bf16]
      trans: [false, true]
    cases:
      - {device: cpu, m: 512, k: 256}
      - {device: gpu, m: {pow2: [1024, 4096]}, k: 4096}
      - {device: h100-sxm, m: 8192, k: 8192, dtype: bf16}
    exclude:
      - {when: dtype == 'fp32' and m > 2048, reason: the same code path as at 2048}
    let: {macs: m * k * k if trans else m * k * k}
    args:
      a: {init: randn, shape: *shape, dtype: dtype, mean: 0.0, std: 1.0}
      b: {init: uniform, shape: [k, k], dtype: dtype, low: -1, high: 1, layout: transposed}
    kwargs:
      trans_b: {init: value, value: trans}
    outputs: {c: {like: a, check: {metric: rel_l2, threshold: 1e-2}}}
    flops: 2 * macs
    bytes: auto
    peak: {units: matmul, in: dtype, acc: fp32}
    contract:
      - {min_roof: {h100-sxm: 0.55, "rtx-*": 0.5, gpu: 0.3}, when: m >= 2048, tags: [ci]}
      - {min_ceiling: {cpu: 0.1}}
      - {min_speedup: 1.0, xfail: to be tuned}
      - {max_slowdown: 0.03}
      - {max_ms: 1000}
      - {max_host_us: 1000.5}
      - {max_memory_gb: {gpu: 40}}
    unlisted_device: fail
    compile: true
    graph: false
    timing: {l2: hot}
    timeout_s: {case: 90}
    requires: {module: triton, min_cc: "8.0"}
    seed: 3
  - name: ragged
    x-note: {anything: [goes, here]}
    target: kernels/ragged.py:attend
    setup: kernels/ragged.py:plan
    reference: kernels/ragged.py:reference
    matrix: {b: [4, 8], smax: {linear: [64, 128, 64]}}
    ragged: {lens: {dist: zipf, low: 1, high: smax, count: b}}
    args:
      q: {init: randn, shape: [sum(lens), 64], dtype: bf16}
      offsets: {init: indptr, lens: lens}
    outputs: {o: {like: q, arg: out}}
    mutates: [q]
    check: {metric: allclose, rtol: 1e-2, atol: 1e-3}
    bytes: 2 * nbytes(q)
  - name: backward
    target: torch:relu
    reference: torch:relu
    mode: backward
    grad: randn
    args: {x: {init: randn, shape: [64, 64], dtype: fp32, requires_grad: true}}
    outputs: {y: {like: x}}
    tolerance: {fp32: {rtol: 1e-5, atol: 0}}
    bytes: 3 * nbytes(x)
"""
