"""The kinds of exports, a module or a folder each; none imports another."""
