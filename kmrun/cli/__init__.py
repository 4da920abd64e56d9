"""The command line: registers one command a file, and makes `kmrun FILE.yaml` mean `kmrun run FILE.yaml`."""


def main() -> None:
    """Entry point of the `kmrun` script."""
    raise SystemExit(2)
