"""What several tests share: builders of plain data."""
