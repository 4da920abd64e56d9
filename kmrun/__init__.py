"""kmrun: a declarative, YAML-driven kernel benchmark runner."""

__version__ = "0.1.0"
