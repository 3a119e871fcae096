"""The cheapest bins for given items, as numbers. Nothing of Kubernetes or AWS is known here.

The problem is vector bin packing with heterogeneous bins: items have sizes in several resources, bin types have costs
and capacities, and some items may not share a bin (``instance``). For Joinery an item is a class of equal pods and a
bin type is an instance type of a NodePool in some zones; ``scheduling/optimise`` translates.

The rooms, each of which knows only those before it:

``linear``      linear programs as arrays, and HiGHS behind them
``instance``    what is to be packed, and ways to make it smaller
``relaxation``  the assignment relaxation: bins in fractions, and duals that price what is packed
``rounding``    from fractions to whole bins
``columns``     column generation over patterns, and a dive to whole numbers of them
``bounds``      what no packing can undercut, and the proof
``local_search``, ``search``   destroy and repair; and the order of it all (``pack``)
``tuning``      the numbers of the search, with what each was measured to do

Sources are cited where a method is used; docs/packing.md lists them and works one small example through.
"""
