"""What is in this machine."""
