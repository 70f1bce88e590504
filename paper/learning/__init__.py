"""The experiments that learn a model by persistent contrastive divergence."""
