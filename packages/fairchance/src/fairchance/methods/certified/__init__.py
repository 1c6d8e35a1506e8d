"""The certified method: with confidence 1 − δ, certified rounds keep their bound on mistakes.

Read ``evidence.py`` first (what a test is), then ``ladder.py`` (which policies are tested),
``engine.py`` (when they are tested, which one is deployed) and ``classifier.py`` (the estimator).
"""

from fairchance.methods.certified.classifier import CertifiedClassifier

__all__ = ["CertifiedClassifier"]
