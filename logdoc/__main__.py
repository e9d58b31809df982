"""`python -m logdoc` is `logdoc`."""

from logdoc.cli import main

if __name__ == "__main__":
    main()
