"""Elementwise kernels of our own, and naive versions to measure against.

They do almost no arithmetic: time is the number of passes over memory. Each temporary tensor costs a pass to
write it and another one to read it.
"""

import torch

LR, BETA1, BETA2, EPS = 1e-3, 0.9, 0.999, 1e-8


def gelu_formula(x):
    """GELU as it stands in the paper, five temporaries."""
    return 0.5 * x * (1.0 + torch.erf(x * 0.7071067811865476))


def adam_in_place(p, g, m, v):
    """One Adam step (no bias correction) that updates parameters p and moments m, v where they are."""
    m.lerp_(g, 1 - BETA1)
    v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
    p.addcdiv_(m, v.sqrt().add_(EPS), value=-LR)


def adam_formula(p, g, m, v):
    """The same step as it stands in the paper; in place as well, because it stands in for such a kernel."""
    new_m = BETA1 * m + (1 - BETA1) * g
    new_v = BETA2 * v + (1 - BETA2) * g * g
    new_p = p - LR * new_m / (torch.sqrt(new_v) + EPS)
    p.copy_(new_p)
    m.copy_(new_m)
    v.copy_(new_v)


def row_sums(x):
    """The sum of each row."""
    return x.sum(dim=-1)
