"""Builds the data in place and prints its hash: `python -m worlds.repository.build`.

Only ever run, never imported, so that `worlds.repository.build` stays the function.
"""

from worlds.repository import DATA, build

if __name__ == "__main__":
    print(build(DATA))
