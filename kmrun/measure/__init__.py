"""Measuring in sides: the supervisor (parent), its workers, and what crosses between them."""
