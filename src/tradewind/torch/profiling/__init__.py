"""What a model costs, counted on tensors that are only shapes."""
