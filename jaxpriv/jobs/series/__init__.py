"""One column of a sensor's table, protected as a trace is."""
