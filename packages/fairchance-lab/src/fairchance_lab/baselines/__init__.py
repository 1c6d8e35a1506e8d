"""Methods to compare with: each decides and observes like Algorithm 1."""
