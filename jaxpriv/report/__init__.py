"""What people read after a release: one record, as JSON and as text."""
