"""Search spaces: one YAML per method, a section per paper; loading, drawing, enumerating."""
