"""Which part of a trace must stay uncertain, and how far apart two places must stay indistinguishable."""
