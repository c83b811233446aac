"""The explorer: one page that shows what rank weights do, from solutions computed beforehand."""
