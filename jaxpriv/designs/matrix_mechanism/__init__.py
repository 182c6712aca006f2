"""The matrix mechanism of differential privacy: least correlated Gaussian noise for a workload of linear queries."""
