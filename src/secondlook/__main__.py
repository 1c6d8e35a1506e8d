"""``python -m secondlook``."""

from secondlook.entry import main

main()
