"""A result, made readable."""
