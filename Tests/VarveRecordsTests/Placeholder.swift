// Placeholder, replaced by the first test of this layer.
