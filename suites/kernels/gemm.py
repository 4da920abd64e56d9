"""Naive matrix products, to measure the library's against."""

import torch


def by_rows(a, b):
    """a @ b, one row of the result after the other: b is read again for each."""
    return torch.cat([a[row : row + 1] @ b for row in range(a.shape[0])])


def linear_by_sums(x, weight):
    """x @ weight.T as a product and a sum, the product of all pairs written to memory in between."""
    return torch.stack([(weight * row).sum(-1) for row in x])


def batched_by_loop(a, b):
    """A batch of small products in a Python loop: what a batched kernel saves."""
    return torch.stack([one @ other for one, other in zip(a, b, strict=True)])
