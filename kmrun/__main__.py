"""`python -m kmrun` is `kmrun`."""

from kmrun.cli import main

if __name__ == "__main__":
    main()
