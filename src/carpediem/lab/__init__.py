"""The laboratory: networks, data, training and the studies that reproduce the paper."""
