"""What compiled loops of other packages are made of: Newton systems of a kernel matrix."""

from owasvm.samples._newton_kernels import add_gram_rows_to, centre, write_gram_block

__all__ = ["add_gram_rows_to", "centre", "write_gram_block"]
