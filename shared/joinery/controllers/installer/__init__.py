"""The installer: read, decide, act about what a cluster needs besides its nodes. ``controller`` is where it begins.

A custom resource each: ``preparation`` and ``connection``; what deleting them does: ``removal``; an operation:
``rotation``. ``access`` lets a ``run`` into the cluster for as long as it works.
"""
