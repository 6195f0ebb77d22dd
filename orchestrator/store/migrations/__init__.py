"""The history of the schema.

A change of tables.py comes with a new file in versions/, numbered one higher, and raises
schema.REVISION; tests compare the three. There is no way down: an upgrade of SQLite leaves a copy.
"""
