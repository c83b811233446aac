"""What solvers for general weights are made of.

``rank_split``
    Costs by rank taken apart.
``candidates``, ``minorants``, ``search``, ``convex``
    A classifier with its objective; convex problems below ours; all that a search knows; convex
    problems on its way.
``descent``
    Convex-concave steps to better classifiers.
``geometry``, ``separable``, ``relaxation``, ``emphasis``, ``choice``
    The bound of a box of coordinates, and how to make it a good one.
``coordinates``, ``assignments``, ``ranks``, ``shares``, ``tree``
    What can be branched on, and the search tree.
``exchange``, ``exploration``, ``enumeration``
    Classical SVMs by exchanges; short descents from many places; all assignments, counted out.
``orders``, ``positions``
    The same as ranks and shares for weighted samples.
``tuning``
    Every number that was chosen, with the reason.
"""
