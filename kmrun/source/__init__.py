"""Reading what people wrote: YAML with marks, diagnostics, the catalogue of cards, models and quants."""
