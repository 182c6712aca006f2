"""Requirements at a target, as matrices F such that noise G is private enough exactly when G ⪰ F."""
