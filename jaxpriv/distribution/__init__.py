"""Privacy of distributions: divergences, notions, compositions and coupling mechanisms for finite alphabets."""
