"""A ring of numbers. This package imports nothing, so that the plugin in it loads quickly."""
