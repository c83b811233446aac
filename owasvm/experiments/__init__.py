"""The paper's experiments: a grid engine that can be killed and resumed, tables, and a report.

A *cell* is one fit: a dataset, a kind of folds, a model, a kernel width, C, a quantifier with its
alpha, and a fold. :mod:`~owasvm.experiments.protocol` says how the paper evaluates a cell,
:mod:`~owasvm.experiments.plan` which cells there are, :mod:`~owasvm.experiments.chains` computes
them, :mod:`~owasvm.experiments.store` keeps them and :mod:`~owasvm.experiments.runner` puts the
parts together. The command is ``owasvm reproduce``.
"""
