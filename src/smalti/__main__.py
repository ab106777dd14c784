"""``python -m smalti``."""

from smalti.cli.main import run

if __name__ == "__main__":
    run()
