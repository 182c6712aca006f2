"""Reading, cleaning, projecting and writing location traces."""
