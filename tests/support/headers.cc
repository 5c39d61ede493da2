// Nothing of its own: the tests' precompiled headers belong to it.
