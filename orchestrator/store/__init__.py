"""The trial database: the only package that imports sqlalchemy and alembic."""
