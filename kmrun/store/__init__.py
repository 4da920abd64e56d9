"""Results on disk: atomic, versioned."""
