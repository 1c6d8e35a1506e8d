"""``python -m secondlook``."""

from secondlook.entry import main

if __name__ == "__main__":
    main()
