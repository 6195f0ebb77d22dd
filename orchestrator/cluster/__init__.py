"""Running a sweep on Ray Tune: the only package that imports ray."""
