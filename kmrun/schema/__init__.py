"""What files may say: frozen pydantic models, one document kind a file."""
