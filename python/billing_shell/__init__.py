"""The thin shell around the billing engine: what a database cannot do by itself."""
