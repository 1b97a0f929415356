"""Builds the data in place, prints the counts and the content hash: `python -m worlds.location.build`.

Only ever run, never imported, so that `worlds.location.build` stays the function. Takes a few seconds.
"""

import sqlite3

from worlds.location.store import CONTENT, DATA, FILE, TABLES, build

if __name__ == "__main__":
    found = build(DATA)
    database = sqlite3.connect(DATA / FILE)
    for table in TABLES:
        print(f"{table:12} {database.execute(f'SELECT count(*) FROM {table}').fetchone()[0]:7,}")
    print(f"{(DATA / FILE).stat().st_size / 1e6:.1f} MB in {FILE}\ncontent {found}")
    if found != CONTENT:
        raise SystemExit(f"expected {CONTENT}: the gold answers of this build are not the published ones")
