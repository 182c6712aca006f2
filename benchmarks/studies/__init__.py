"""Studies on recorded data, each runnable by the path of a file that its publisher provides."""
