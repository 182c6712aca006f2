"""The account of releases: what was published, and what all of it tells together."""
