"""`python -m tandem.importer`, for those who have no `tandem` command."""
import sys

from .command import main

sys.exit(main())
