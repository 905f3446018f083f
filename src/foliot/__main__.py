"""`python -m foliot` is `foliot`."""

from foliot.cli import main

if __name__ == "__main__":
    main()
