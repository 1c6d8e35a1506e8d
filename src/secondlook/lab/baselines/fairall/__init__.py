"""FairAll: an autoencoder that learns from all applicants, and a policy in its latent space.

After Rateike et al. 2022. It needs jax and optax (``pip install 'secondlook[deep]'``), which are
imported when the first model is made.
"""

from secondlook.lab.baselines.fairall.method import FairAll, Schedule

__all__ = ["FairAll", "Schedule"]
