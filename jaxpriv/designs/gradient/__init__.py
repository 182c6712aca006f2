"""Projected gradients over Cholesky factors, with the dual bound that certifies them."""
