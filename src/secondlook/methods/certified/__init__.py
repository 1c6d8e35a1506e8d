"""The certified method: decisions whose false discovery rate is proved."""
