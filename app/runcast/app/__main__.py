"""`python -m runcast.app` is `runcast`."""

from runcast.app.cli import main

if __name__ == "__main__":
    main()
