"""Pure maths on frozen dataclasses: standard library only, no path, clock or environment."""
