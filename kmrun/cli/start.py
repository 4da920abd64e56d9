"""Imported before anything else of the command line, typer included.

Imports make many objects and hardly any garbage, yet at the default threshold the collector runs over them
again and again: a tenth of the time of `kmrun compare`. It still runs, only less often.
"""

import gc

gc.set_threshold(50_000, 20, 20)
