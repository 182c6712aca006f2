"""Data sets of many traces: the job of `jaxpriv batch`, and what `jaxpriv verify` does with its folder."""
