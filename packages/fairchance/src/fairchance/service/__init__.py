"""A program over HTTP: decisions, outcomes and proof, behind keys with roles.

``make_app`` in ``app`` is the application; ``fairchance serve`` runs it. Everything it does is a
method of ``Program``; what is added here is the reading of JSON, keys, limits, and decisions that
are committed together.
"""
