"""Pictures for reports: pure functions from numbers to SVG text, no library, no state."""
