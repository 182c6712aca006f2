"""The parts of the report as a page: its data, its figures and its style sheet."""
