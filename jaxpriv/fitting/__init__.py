"""Priors from data: fits of kernels to traces, what is wrong with them, and sets of them to withstand."""
