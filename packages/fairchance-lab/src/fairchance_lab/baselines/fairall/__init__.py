"""FairAll: an autoencoder that learns from all applicants, and a policy in its latent space.

After Rateike et al. 2022. It needs jax and optax (``pip install 'fairchance-lab[deep]'``), which
are imported when the first model is made.
"""

from fairchance_lab.baselines.fairall.method import FairAll, Schedule

__all__ = ["FairAll", "Schedule"]
