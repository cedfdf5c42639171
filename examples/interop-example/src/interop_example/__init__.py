"""A ring of numbers. Nothing is imported here, so that the plugin beside it loads in no time."""
