"""``python -m owasvm.cli``."""

from owasvm.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
